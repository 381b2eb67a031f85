#include "sextant/rope_config/flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "sextant/error.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/parse_number.h"

namespace sextant {
namespace {

using nlohmann::json;

// Words as a shell would part them: quotes hold them together.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool any = false;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      any = true;
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\\') {
      if (any || !word.empty()) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (quote != 0) fail(std::string("flags: expected a closing ") + quote + ", but got none");
  if (any || !word.empty()) words.push_back(word);
  return words;
}

constexpr std::array kLlamaCpp = {
    "--rope-scaling",   "--rope-scale",      "--rope-freq-base",   "--rope-freq-scale",
    "--yarn-orig-ctx",  "--yarn-ext-factor", "--yarn-attn-factor", "--yarn-beta-slow",
    "--yarn-beta-fast", "--ctx-size",        "--grp-attn-n",       "--grp-attn-w",
};
constexpr std::array kVllm = {"--rope-scaling", "--rope-theta", "--hf-overrides",
                              "--max-model-len"};

bool is_known(const std::string& name) {
  return std::ranges::find(kLlamaCpp, name) != kLlamaCpp.end() ||
         std::ranges::find(kVllm, name) != kVllm.end();
}

bool mentions(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words,
                             [&](const char* w) { return text.find(w) != std::string::npos; });
}

// -1 is a number.
bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && (word[1] < '0' || word[1] > '9');
}

// As llama.cpp and vLLM read them: _ is -, and some names are short.
std::string long_name(std::string name) {
  std::ranges::replace(name, '_', '-');
  static const std::map<std::string, std::string> all = {
      {"-c", "--ctx-size"}, {"-gan", "--grp-attn-n"}, {"-gaw", "--grp-attn-w"}};
  const auto found = all.find(name);
  return found == all.end() ? name : found->second;
}

// A whole command line: flags about rotary positions, and others, which are passed over with what follows them.
class Flags {
 public:
  explicit Flags(const std::string& text) : words_(words_of(text)) {
    while (next_ < words_.size() && !is_flag(words_[next_])) ++next_;  // programs and models
    while (next_ < words_.size()) read_flag();
  }

  bool has(const std::string& name) const { return all_.contains(name); }
  bool is_vllm() const {
    return has("--rope-theta") || has("--hf-overrides") || has("--max-model-len") ||
           (has("--rope-scaling") && all_.at("--rope-scaling").starts_with("{"));
  }
  const std::vector<std::string>& passed_over() const { return passed_over_; }

  std::string take(const std::string& name) {
    std::string value = all_.at(name);
    all_.erase(name);
    return value;
  }
  double number(const std::string& name, double otherwise) {
    if (!has(name)) return otherwise;
    const std::string text = take(name);
    const std::optional<double> value = parse_number(text);
    if (!value) {
      fail("flags: " + name + ": expected a number, but got \"" + text.substr(0, 60) + "\"");
    }
    return *value;
  }
  // 0: what the model's file says.
  double number_from_0(const std::string& name) {
    const double value = number(name, 0);
    if (value < 0) {
      fail("flags: " + name + ": expected a number from 0, but got " + json(value).dump());
    }
    return value;
  }
  void finish() const {
    if (all_.empty()) return;
    fail("flags: " + all_.begin()->first +
         ": expected a flag of one engine, but got some of llama.cpp and some of vLLM");
  }

 private:
  void read_flag() {
    const std::string word = words_[next_++];
    const size_t equals = word.find('=');
    const std::string name = long_name(word.substr(0, equals));
    if (!is_known(name)) return pass_over(name, word);
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (next_ < words_.size() && !is_flag(words_[next_])) {
      value = words_[next_++];
    } else {
      fail("flags: " + name + ": expected a value, but got none");
    }
    if (!all_.emplace(name, value).second) fail("flags: " + name + ": expected once, but got two");
    if (next_ < words_.size() && !is_flag(words_[next_])) {
      fail("flags: expected a flag, but got \"" + words_[next_].substr(0, 60) + "\"");
    }
  }

  void pass_over(const std::string& name, const std::string& word) {
    if (mentions(name, {"rope", "yarn", "grp-attn"})) {
      fail("flags: " + name.substr(0, 60) +
           ": expected a flag of llama.cpp or vLLM about rotary positions");
    }
    std::string rest = word;
    while (next_ < words_.size() && !is_flag(words_[next_])) rest += " " + words_[next_++];
    if (mentions(rest, {".rope.", "\"rope_"})) {
      fail("flags: " + name.substr(0, 60) +
           ": expected nothing about rotary positions, which have flags of their own, but got \"" +
           rest.substr(0, 120) + "\"");
    }
    passed_over_.push_back(name.substr(0, 40));
  }

  std::vector<std::string> words_;
  size_t next_ = 0;
  std::map<std::string, std::string> all_;
  std::vector<std::string> passed_over_;
};

json config_of(const Overrides& overrides, double base, double length) {
  json config = json::object();
  if (overrides.head_dim > 0) config["head_dim"] = overrides.head_dim;
  if (base > 0) config["rope_theta"] = base;
  if (length > 0) config["max_position_embeddings"] = length;
  return config;
}

// The configuration was made of flags: errors say so.
std::vector<RopeConfig> read_config(const json& config, const Overrides& overrides) {
  try {
    return read_hugging_face(config, overrides);
  } catch (const Error& error) {
    const std::string what = error.what(), where = "config.json: ";
    fail(what.starts_with(where) ? "flags: " + what.substr(where.size()) : what);
  }
}

// vLLM's lengths may end in k, m or g, and in K, M or G of 1024; below 0 is its word for the default.
double max_model_len(Flags& flags) {
  const std::string name = "--max-model-len";
  if (!flags.has(name)) return 0;
  const std::string text = flags.take(name);
  static const std::string_view units = "kmgKMG";
  const size_t unit = text.empty() ? std::string_view::npos : units.find(text.back());
  const bool has_unit = unit != std::string_view::npos;
  double value = NAN;
  const char* end = text.data() + text.size() - (has_unit ? 1 : 0);
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !(std::fabs(value) <= 1e15)) {
    fail("flags: " + name + ": expected a length like 32768 or 32K, but got \"" +
         text.substr(0, 60) + "\"");
  }
  if (has_unit) value *= std::pow(unit < 3 ? 1000 : 1024, 1 + static_cast<double>(unit % 3));
  return std::max(0.0, value);
}

std::vector<RopeConfig> read_vllm(Flags& flags, const Overrides& overrides) {
  const double base = flags.number_from_0("--rope-theta"), length = max_model_len(flags);
  json config = config_of(overrides, base, length);
  if (flags.has("--rope-scaling"))
    config["rope_scaling"] = parse_json(flags.take("--rope-scaling"), "--rope-scaling");
  if (flags.has("--hf-overrides")) {
    const json own = parse_json(flags.take("--hf-overrides"), "--hf-overrides");
    if (!own.is_object()) fail("flags: --hf-overrides: expected an object, but got " + own.dump());
    config.update(own);
  }
  flags.finish();
  return read_config(config, overrides);
}

std::string kind_of(Flags& flags, double factor) {
  if (!flags.has("--rope-scaling")) return factor == 1 ? "none" : "linear";
  std::string kind = flags.take("--rope-scaling");
  if (kind != "none" && kind != "linear" && kind != "yarn") {
    fail("flags: --rope-scaling: expected none, linear or yarn, but got \"" + kind.substr(0, 60) +
         "\"");
  }
  return kind;
}

// By which positions are divided; 1: they are not.
double factor_of(Flags& flags) {
  double factor = flags.number("--rope-scale", 1);
  const char* name = "--rope-scale";
  if (flags.has("--rope-freq-scale")) {
    name = "--rope-freq-scale";
    factor = 1 / flags.number(name, 1);
  }
  if (!(factor >= 1 && factor <= 1e9)) {
    fail(std::string("flags: ") + name +
         ": expected a number that makes frequencies 1 to 1e9 times as slow");
  }
  return factor;
}

void refuse_self_extend(Flags& flags) {
  const double group = flags.number("--grp-attn-n", 1);
  flags.number("--grp-attn-w", 512);
  if (group == 1) return;
  fail(
      "flags: --grp-attn-n: expected 1, as Self-Extend groups positions and changes no frequency, "
      "but got " +
      json(group).dump());
}

void read_yarn(Flags& flags, double factor, json& scaling) {
  const double ext = flags.number("--yarn-ext-factor", -1);
  if (ext != 1 && ext != -1) {
    fail("flags: --yarn-ext-factor: expected 1, the whole ramp, but got " + json(ext).dump());
  }
  // Below 0 is llama.cpp's word for the default.
  const double fast = flags.number("--yarn-beta-fast", -1);
  const double slow = flags.number("--yarn-beta-slow", -1);
  const double attention = flags.number("--yarn-attn-factor", -1);
  scaling["beta_fast"] = fast < 0 ? 32 : fast;
  scaling["beta_slow"] = slow < 0 ? 1 : slow;
  const double original = flags.number_from_0("--yarn-orig-ctx");
  if (original > 0) scaling["original_max_position_embeddings"] = original;
  // llama.cpp multiplies by the temperature itself.
  if (attention >= 0 && attention != 1) {
    scaling["attention_factor"] = attention * yarn_temperature(factor);
  }
}

std::vector<RopeConfig> read_llama_cpp(Flags& flags, const Overrides& overrides) {
  const double base = flags.number_from_0("--rope-freq-base");
  const double length = flags.number_from_0("--ctx-size");
  if (overrides.head_dim <= 0) {
    fail("flags: head_dim: expected --head-dim N, as flags do not say the size of heads");
  }
  if (base == 0 && overrides.base <= 0) {
    fail(
        "flags: --rope-freq-base: expected the base of the frequencies, here or as --base; the "
        "model's file has it");
  }
  refuse_self_extend(flags);
  const double factor = factor_of(flags);
  const std::string kind = kind_of(flags, factor);
  json scaling = {{"rope_type", kind == "none" ? "default" : kind}};
  if (kind != "none") scaling["factor"] = factor;
  if (kind == "yarn") read_yarn(flags, factor, scaling);
  for (const char* name : {"--yarn-orig-ctx", "--yarn-ext-factor", "--yarn-attn-factor",
                           "--yarn-beta-slow", "--yarn-beta-fast"}) {
    if (flags.has(name)) {
      fail(std::string("flags: ") + name + ": expected --rope-scaling yarn beside it");
    }
  }
  flags.finish();
  json config = config_of(overrides, base, length);
  config["rope_scaling"] = scaling;
  return read_config(config, overrides);
}

// Engines are told how far to read. Interpolation has no field for the length that it divides.
void set_trained_length(RopeConfig& setting) {
  const auto* fixed = std::get_if<Stretch>(&setting.scaling.stretch);
  const auto* linear = fixed ? std::get_if<Linear>(fixed) : nullptr;
  if (!linear || setting.max_length == 0) return;
  setting.scaling.original_length =
      std::max<int64_t>(1, std::llround(static_cast<double>(setting.max_length) / linear->factor));
  setting.scaling.warnings.push_back(
      "flags do not say what length the model was trained on; the context divided by the factor, " +
      std::to_string(setting.scaling.original_length) + ", is taken for it");
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

bool looks_like_flags(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (is_flag(word)) return text.find('\0') == std::string::npos;
  }
  return false;
}

std::vector<RopeConfig> read_flags(const std::string& text, const Overrides& overrides) {
  Flags flags(text);
  const bool vllm = flags.is_vllm();
  std::vector<RopeConfig> settings =
      vllm ? read_vllm(flags, overrides) : read_llama_cpp(flags, overrides);
  for (RopeConfig& setting : settings) {
    set_trained_length(setting);
    if (flags.passed_over().empty()) continue;
    setting.scaling.warnings.push_back("passed over, as they are not about rotary positions: " +
                                       listed(flags.passed_over()));
  }
  return settings;
}

}  // namespace sextant
