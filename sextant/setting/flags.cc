#include "sextant/setting/flags.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sextant/error.h"
#include "sextant/setting/hugging_face.h"

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

class Flags {
 public:
  explicit Flags(const std::string& text) {
    const std::vector<std::string> words = words_of(text);
    for (size_t n = 0; n < words.size(); ++n) {
      std::string name = words[n];
      if (!name.starts_with("-")) {
        if (n == 0) continue;  // the program
        fail("flags: expected a flag, but got \"" + name.substr(0, 60) + "\"");
      }
      std::string value;
      if (const size_t equals = name.find('='); equals != std::string::npos) {
        value = name.substr(equals + 1);
        name = name.substr(0, equals);
      } else if (n + 1 < words.size()) {
        value = words[++n];
      } else {
        fail("flags: " + name + ": expected a value, but got none");
      }
      std::ranges::replace(name, '_', '-');
      if (name == "-c") name = "--ctx-size";
      if (!all_.emplace(name, value).second)
        fail("flags: " + name + ": expected once, but got two");
    }
  }

  bool has(const std::string& name) const { return all_.contains(name); }
  std::string take(const std::string& name) {
    std::string value = all_.at(name);
    all_.erase(name);
    return value;
  }
  double number(const std::string& name, double otherwise) {
    if (!has(name)) return otherwise;
    const std::string text = take(name);
    size_t end = 0;
    double value = NAN;
    try {
      value = std::stod(text, &end);
    } catch (const std::exception&) {
      end = 0;
    }
    if (end == 0 || end != text.size() || !std::isfinite(value)) {
      fail("flags: " + name + ": expected a number, but got \"" + text.substr(0, 60) + "\"");
    }
    return value;
  }
  void finish() const {
    if (all_.empty()) return;
    fail("flags: " + all_.begin()->first +
         ": expected a flag of llama.cpp or vLLM about rotary positions");
  }

 private:
  std::map<std::string, std::string> all_;
};

json config_of(const Overrides& overrides, double base, double length) {
  if (overrides.head_dim <= 0) {
    fail("flags: head_dim: expected --head-dim N, as flags do not say the size of heads");
  }
  json config = {{"head_dim", overrides.head_dim}};
  if (base > 0) config["rope_theta"] = base;
  if (length > 0) config["max_position_embeddings"] = length;
  return config;
}

std::vector<RotarySetting> read_vllm(Flags& flags, const Overrides& overrides) {
  json config =
      config_of(overrides, flags.number("--rope-theta", 0), flags.number("--max-model-len", 0));
  if (flags.has("--rope-scaling"))
    config["rope_scaling"] = parse_json(flags.take("--rope-scaling"), "--rope-scaling");
  if (flags.has("--hf-overrides"))
    config.update(parse_json(flags.take("--hf-overrides"), "--hf-overrides"));
  flags.finish();
  return read_hugging_face(config, overrides);
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

std::vector<RotarySetting> read_llama_cpp(Flags& flags, const Overrides& overrides) {
  json config =
      config_of(overrides, flags.number("--rope-freq-base", 0), flags.number("--ctx-size", 0));
  double factor = flags.number("--rope-scale", 1);
  if (flags.has("--rope-freq-scale")) {
    const double scale = flags.number("--rope-freq-scale", 1);
    if (!(scale > 0)) fail("flags: --rope-freq-scale: expected a number above 0");
    factor = 1 / scale;
  }
  const std::string kind = kind_of(flags, factor);
  json scaling = {{"rope_type", kind == "none" ? "default" : kind}};
  if (kind != "none") scaling["factor"] = factor;
  const double attention = flags.number("--yarn-attn-factor", 1);
  const double ext = flags.number("--yarn-ext-factor", 1);
  const double fast = flags.number("--yarn-beta-fast", 32),
               slow = flags.number("--yarn-beta-slow", 1);
  const double original = flags.number("--yarn-orig-ctx", 0);
  if (kind == "yarn") {
    if (ext != 1 && ext != -1) {
      fail("flags: --yarn-ext-factor: expected 1, the whole ramp, but got " + std::to_string(ext));
    }
    scaling["beta_fast"] = fast;
    scaling["beta_slow"] = slow;
    if (original > 0) scaling["original_max_position_embeddings"] = original;
    // llama.cpp multiplies by the temperature itself.
    if (attention != 1) scaling["attention_factor"] = attention * yarn_temperature(factor);
  }
  flags.finish();
  config["rope_scaling"] = scaling;
  return read_hugging_face(config, overrides);
}

std::string text(double value) { return json(value).dump(); }

// No dialect of llama.cpp has these.
void refuse(const Scaling& scaling, const std::string& dialect) {
  fail("convert: " + dialect + ": expected none, linear or YaRN scaling, but got " + scaling.type);
}

}  // namespace

std::vector<RotarySetting> read_flags(const std::string& text, const Overrides& overrides) {
  Flags flags(text);
  const bool vllm = flags.has("--rope-theta") || flags.has("--hf-overrides") ||
                    flags.has("--max-model-len") ||
                    text.find("--rope-scaling {") != std::string::npos ||
                    text.find("--rope-scaling '{") != std::string::npos ||
                    text.find("--rope-scaling={") != std::string::npos;
  return vllm ? read_vllm(flags, overrides) : read_llama_cpp(flags, overrides);
}

std::string write_llama_cpp(const RotarySetting& setting) {
  std::ostringstream out;
  out << "--rope-freq-base " << text(setting.base);
  const auto* fixed = std::get_if<Stretch>(&setting.scaling.stretch);
  if (!fixed) refuse(setting.scaling, "llama.cpp");
  if (const auto* linear = std::get_if<Linear>(fixed)) {
    out << " --rope-scaling linear --rope-scale " << text(linear->factor);
  } else if (const auto* yarn = std::get_if<Yarn>(fixed)) {
    if (!yarn->truncate || yarn->ramp == Yarn::Ramp::kTurns) {
      fail("convert: llama.cpp: truncate: expected true, as its ramp has whole ends");
    }
    if (setting.scaling.score_factor != 1) {
      fail("convert: llama.cpp: mscale_all_dim: expected none, as it has no flag for it");
    }
    out << " --rope-scaling yarn --rope-scale " << text(yarn->factor) << " --yarn-orig-ctx "
        << yarn->original_length << " --yarn-beta-fast " << text(yarn->beta_fast)
        << " --yarn-beta-slow " << text(yarn->beta_slow);
    const double attention = yarn_gain(*yarn) / yarn_temperature(yarn->factor);
    if (attention != 1) out << " --yarn-attn-factor " << text(attention);
  } else if (!std::holds_alternative<std::monostate>(*fixed)) {
    refuse(setting.scaling, "llama.cpp");
  }
  if (setting.max_length > 0) out << " -c " << setting.max_length;
  return out.str();
}

std::string write_vllm(const RotarySetting& setting) {
  json object = write_hugging_face(json::object(), {setting}, 5).at("rope_parameters");
  if (setting.rotary_dim != setting.head_dim && setting.scaling.type != "proportional") {
    object["partial_rotary_factor"] =
        static_cast<double>(setting.rotary_dim) / static_cast<double>(setting.head_dim);
  }
  std::string line = "--hf-overrides '" + json({{"rope_parameters", object}}).dump() + "'";
  if (setting.max_length > 0) line += " --max-model-len " + std::to_string(setting.max_length);
  return line;
}

}  // namespace sextant
