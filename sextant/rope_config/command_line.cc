// A line is split into words as by a shell. Flags about rotary positions and lengths are kept under
// their long names, the others are skipped with their values, and variables of llama.cpp count
// where the line has no flag for them.
#include "sextant/rope_config/command_line.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/shell_words.h"

namespace sextant {
namespace {

using nlohmann::json;

// llama.cpp's flags with their variables, short names and negated names, read at 0c1e57098 in
// common/arg.cpp. A switch has no value.
struct LlamaCppFlag {
  std::string_view name, variable, short_name = {};
  bool is_switch = false;
};
constexpr LlamaCppFlag kLlamaCpp[] = {
    {"--rope-scaling", "LLAMA_ARG_ROPE_SCALING_TYPE"},
    {"--rope-scale", "LLAMA_ARG_ROPE_SCALE"},
    {"--rope-freq-base", "LLAMA_ARG_ROPE_FREQ_BASE"},
    {"--rope-freq-scale", "LLAMA_ARG_ROPE_FREQ_SCALE"},
    {"--yarn-orig-ctx", "LLAMA_ARG_YARN_ORIG_CTX"},
    {"--yarn-ext-factor", "LLAMA_ARG_YARN_EXT_FACTOR"},
    {"--yarn-attn-factor", "LLAMA_ARG_YARN_ATTN_FACTOR"},
    {"--yarn-beta-slow", "LLAMA_ARG_YARN_BETA_SLOW"},
    {"--yarn-beta-fast", "LLAMA_ARG_YARN_BETA_FAST"},
    {"--ctx-size", "LLAMA_ARG_CTX_SIZE", "-c"},
    {"--grp-attn-n", "LLAMA_ARG_GRP_ATTN_N", "-gan"},
    {"--grp-attn-w", "LLAMA_ARG_GRP_ATTN_W", "-gaw"},
    {"--parallel", "LLAMA_ARG_N_PARALLEL", "-np"},
    {"--kv-unified-per-slot", "LLAMA_ARG_KV_UNIFIED_PER_SLOT"},
    {"--no-kv-unified", "LLAMA_ARG_NO_KV_UNIFIED", "-no-kvu", true},
    {"--kv-unified", "LLAMA_ARG_KV_UNIFIED", "-kvu", true},
};
constexpr std::string_view kNegated = "--no-kv-unified", kSwitch = "--kv-unified";
// Flags of slots, whose names programs that start others (mpirun -np 4) have too.
constexpr std::array<std::string_view, 3> kSlots = {"--parallel", kSwitch, "--kv-unified-per-slot"};
constexpr std::array kVllm = {"--rope-scaling", "--rope-theta", "--hf-overrides",
                              "--max-model-len"};

// Flags about rotary positions of programs whose lines are not read.
struct ForeignFlag {
  std::string_view name, program, instead;
};
constexpr ForeignFlag kForeign[] = {
    {"--json-model-override-args", "SGLang",
     "a config.json with its fields merged into the model's says the same and is read"},
    {"--compress-pos-emb", "text-generation-webui", "llama.cpp's flag is --rope-scale"},
    {"--alpha-value", "text-generation-webui", "llama.cpp's flag is --rope-freq-base"},
};

// Programs whose name tells their flags from llama.cpp's. Only vLLM's lines are read.
constexpr std::pair<std::string_view, std::string_view> kPrograms[] = {
    {"vllm", "vLLM"}, {"sglang", "SGLang"}, {"mlx_lm", "MLX"}};

// The name of a program's row: vllm for /usr/bin/vllm and for vllm.entrypoints.openai.api_server.
std::string_view program_of(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.starts_with("--")) break;
    const std::string last = word.substr(word.rfind('/') + 1);
    for (const auto& [name, program] : kPrograms) {
      if (last == name || last.starts_with(std::string(name) + ".")) return program;
    }
  }
  return "";
}

const LlamaCppFlag* llama_cpp_flag(std::string_view name) {
  const auto* found = std::ranges::find(kLlamaCpp, name, &LlamaCppFlag::name);
  return found == std::end(kLlamaCpp) ? nullptr : found;
}

const ForeignFlag* foreign_flag(std::string_view name) {
  const auto* found = std::ranges::find(kForeign, name, &ForeignFlag::name);
  return found == std::end(kForeign) ? nullptr : found;
}

bool is_known(const std::string& name) {
  return llama_cpp_flag(name) != nullptr || std::ranges::find(kVllm, name) != kVllm.end();
}

// The flag of a word such as LLAMA_ARG_CTX_SIZE=4096; null for any other word.
const LlamaCppFlag* flag_of_variable(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return nullptr;
  const auto* found = std::ranges::find(kLlamaCpp, word.substr(0, equals), &LlamaCppFlag::variable);
  return found == std::end(kLlamaCpp) ? nullptr : found;
}

bool mentions(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words,
                             [&](const char* w) { return text.find(w) != std::string::npos; });
}

// The long name of a flag, as llama.cpp and vLLM resolve it: _ is equal to -, and some names are
// short.
std::string long_name(std::string name) {
  std::ranges::replace(name, '_', '-');
  if (name.size() < 2 || name[1] == '-') return name;
  const auto* found = std::ranges::find(kLlamaCpp, name, &LlamaCppFlag::short_name);
  return found == std::end(kLlamaCpp) ? name : std::string(found->name);
}

// vLLM's flags with an object as value.
constexpr std::array kObjects = {"--rope-scaling", "--hf-overrides"};

// A shell removes double quotes that are not within single quotes, and splits the rest at spaces.
void check_quotes(const std::string& name, const std::string& value) {
  if (!value.starts_with("{") || value == "{}") return;
  const bool whole = std::ranges::count(value, '{') == std::ranges::count(value, '}');
  if (whole && value.find('"') != std::string::npos) return;
  fail("flags: " + name + ": expected JSON within single quotes, as in " + name +
       " '{\"factor\": 4}', because a shell takes double quotes away, but got " +
       value.substr(0, 60));
}

// Whether the pointer is like "/rope_parameters/factor", with names of at most 8 levels. A number
// would be an index into a list.
bool is_path(const std::string& pointer) {
  bool name = false;
  for (size_t at = 1; at <= pointer.size(); ++at) {
    const char c = at < pointer.size() ? pointer[at] : '/';
    if (c == '~' || (c == '/' && !name)) return false;
    name = c != '/' && (name || c < '0' || c > '9');
  }
  return std::ranges::count(pointer, '/') <= 8;
}

json value_of_word(const std::string& word, const std::string& flag) {
  if (word.starts_with('[') || word.starts_with('{')) return parse_json(word, "flags: " + flag);
  const json value = json::parse(word, nullptr, false);
  return value.is_discarded() ? json(word) : value;
}

}  // namespace

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && (word[1] < '0' || word[1] > '9');
}

bool is_about_positions(const std::string& word) {
  if (word.starts_with("LLAMA_ARG_")) return flag_of_variable(word) != nullptr;
  if (!word.starts_with("--")) return false;
  const std::string name = long_name(word.substr(0, word.find_first_of("=.")));
  if (std::ranges::find(kSlots, name) != kSlots.end()) return false;
  return is_known(name) || foreign_flag(name) != nullptr || mentions(name, {"rope", "yarn"});
}

CommandLine::CommandLine(std::vector<std::string> words) : words_(without_shell(std::move(words))) {
  while (next_ < words_.size() && !is_flag(words_[next_])) ++next_;  // skips programs and models
  while (next_ < words_.size()) read_flag();
  read_environment();
  program_ = program_of(words_);
  if (!program_.empty() && program_ != "vLLM") {
    fail("flags: expected a command line of llama.cpp or vLLM, but got " + program_ +
         "'s, which takes its positions from the model's config.json");
  }
  if (!is_vllm()) return;
  for (const std::string_view name : kSlots) {
    if (all_.erase(std::string(name)) > 0) passed_over_.emplace_back(name);
  }
}

// In llama.cpp a flag overrides its variable, and the variable of a negated name counts whatever
// its value.
void CommandLine::read_environment() {
  for (const LlamaCppFlag& flag : kLlamaCpp) {
    for (const std::string& word : words_) {
      if (flag_of_variable(word) != &flag) continue;
      if (flag.name == kNegated) {
        all_.emplace(kSwitch, "off");
      } else {
        all_.emplace(flag.name, word.substr(word.find('=') + 1));
      }
    }
  }
  for (const std::string& word : words_) {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() == word.size() || !name.starts_with("LLAMA_ARG_") || flag_of_variable(word) ||
        !mentions(name, {"ROPE", "YARN", "GRP_ATTN", "PARALLEL", "CTX_SIZE"})) {
      continue;
    }
    fail("flags: " + name.substr(0, 60) +
         ": expected a variable that llama.cpp reads, as LLAMA_ARG_ROPE_SCALING_TYPE and "
         "LLAMA_ARG_N_PARALLEL");
  }
}

bool CommandLine::is_vllm() const {
  return program_ == "vLLM" || has("--rope-theta") || has("--hf-overrides") ||
         has("--max-model-len") || !dotted_.empty() ||
         (has("--rope-scaling") && all_.at("--rope-scaling").starts_with("{"));
}

std::string CommandLine::take(const std::string& name) {
  std::string value = all_.at(name);
  all_.erase(name);
  return value;
}

json CommandLine::take_object(const std::string& name) {
  json object = json::object();
  if (has(name)) {
    const std::string text = take(name);
    check_quotes(name, text);
    object = parse_json(text, "flags: " + name);
    if (!object.is_object())
      fail("flags: " + name + ": expected an object, but got " + object.dump());
  }
  if (const auto found = dotted_.find(name); found != dotted_.end()) {
    object.merge_patch(found->second);
    dotted_.erase(found);
  }
  return object;
}

double CommandLine::number(const std::string& name, double otherwise) {
  if (!has(name)) return otherwise;
  const std::string text = take(name);
  const std::optional<double> value = parse_number(text);
  if (!value) {
    fail("flags: " + name + ": expected a number, but got \"" + text.substr(0, 60) + "\"");
  }
  return *value;
}

bool CommandLine::is_on(const std::string& name) {
  if (!has(name)) return false;
  const std::string value = take(name);
  for (const char* on : {"on", "enabled", "true", "1"}) {
    if (value == on) return true;
  }
  for (const char* off : {"off", "disabled", "false", "0"}) {
    if (value == off) return false;
  }
  fail("flags: " + name + ": expected on, off, enabled, disabled, true, false, 1 or 0, but got \"" +
       value.substr(0, 60) + "\"");
}

double CommandLine::number_from_0(const std::string& name) {
  const double value = number(name, 0);
  if (value < 0) {
    fail("flags: " + name + ": expected a number from 0, but got " + json(value).dump());
  }
  return value;
}

void CommandLine::finish() const {
  if (all_.empty()) return;
  fail("flags: " + all_.begin()->first +
       ": expected a flag of one engine, but got some of llama.cpp and some of vLLM");
}

std::string CommandLine::value_after(const std::string& name, const std::string& word,
                                     size_t equals) {
  if (equals != std::string::npos) return word.substr(equals + 1);
  if (next_ < words_.size() && !is_flag(words_[next_])) return words_[next_++];
  fail("flags: " + name + ": expected a value, but got none");
}

// Reads a flag such as --hf-overrides.rope_parameters.factor 4.
bool CommandLine::read_dotted(const std::string& word, const std::string& value) {
  const size_t dot = word.find('.');
  std::string pointer = word.substr(dot);
  std::ranges::replace(pointer, '.', '/');
  if (!is_path(pointer)) return false;
  json& object = dotted_[long_name(word.substr(0, dot))];
  if (object.is_null()) object = json::object();
  try {
    json patch = {{pointer, value_of_word(value, word.substr(0, 60))}};
    object.merge_patch(patch.unflatten());
  } catch (const json::exception&) {
    return false;
  }
  return true;
}

void CommandLine::read_flag() {
  const std::string word = words_[next_++];
  const size_t equals = word.find('=');
  const std::string written = word.substr(0, equals);
  const size_t dot = written.find('.');
  const std::string name = long_name(written.substr(0, dot));
  if (const size_t space = written.find(' ');
      is_known(long_name(written.substr(0, space))) && space != std::string::npos) {
    fail("flags: " + written.substr(0, 60) +
         ": expected a flag and its value as two words (two items of a list), but got one");
  }
  if (const LlamaCppFlag* flag = llama_cpp_flag(name); flag != nullptr && flag->is_switch) {
    all_[std::string(kSwitch)] = name == kNegated ? "off" : "on";
    return skip_values();
  }
  const bool dotted =
      dot != std::string::npos && std::ranges::find(kObjects, name) != kObjects.end();
  if (!dotted && (dot != std::string::npos || !is_known(name))) {
    return pass_over(long_name(written), word);
  }
  const std::string value = value_after(name, word, equals);
  if (dotted) {
    if (!read_dotted(written, value)) {
      fail("flags: " + written.substr(0, 60) + ": expected keys with dots between them");
    }
  } else {
    check_quotes(name, value);
    if (!all_.emplace(name, value).second) fail("flags: " + name + ": expected once, but got two");
  }
  if (std::ranges::find(kSlots, name) != kSlots.end()) skip_values();
  if (next_ < words_.size() && !is_flag(words_[next_])) {
    fail("flags: expected a flag, but got \"" + words_[next_].substr(0, 60) + "\"");
  }
}

void CommandLine::skip_values() {
  while (next_ < words_.size() && !is_flag(words_[next_])) ++next_;
}

void CommandLine::pass_over(const std::string& name, const std::string& word) {
  if (const ForeignFlag* foreign = foreign_flag(name.substr(0, name.find('.')))) {
    fail("flags: " + std::string(foreign->name) +
         ": expected a flag of llama.cpp or vLLM, but got " + std::string(foreign->program) +
         "'s; " + std::string(foreign->instead));
  }
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
  const std::string length = ".context_length=int:";
  if (const size_t at = rest.find(length); name == "--override-kv" && at != std::string::npos) {
    const size_t start = at + length.size();
    overridden_length_ =
        parse_number(rest.substr(start, rest.find_first_of(", ", start) - start)).value_or(0);
  }
  passed_over_.push_back(name.substr(0, 40));
}

}  // namespace sextant
