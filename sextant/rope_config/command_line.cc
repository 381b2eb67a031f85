#include "sextant/rope_config/command_line.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/parse_number.h"

namespace sextant {
namespace {

using nlohmann::json;

// Whether a backslash escapes the next character, as in a shell: within double quotes, and before a
// quote outside of quotes.
bool is_escape(const std::string& text, size_t at, char quote) {
  if (text[at] != '\\' || at + 1 == text.size() || quote == '\'') return false;
  const std::string_view escaped = quote == '"' ? "\"\\$`" : "\"'";
  return escaped.find(text[at + 1]) != std::string_view::npos;
}

// Splits text into words as a shell does; quotes keep spaces.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool any = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_escape(text, at, quote)) {
      word += text[++at];
    } else if (quote != 0) {
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

// LLAMA_ARG_CTX_SIZE=4096 is llama.cpp's --ctx-size 4096: returns the flag's name and the value, or
// an empty name for any other word.
std::pair<std::string, std::string> from_environment(const std::string& word) {
  constexpr std::string_view kPrefix = "LLAMA_ARG_";
  const size_t equals = word.find('=');
  if (!word.starts_with(kPrefix) || equals == std::string::npos) return {};
  std::string name = "--" + word.substr(kPrefix.size(), equals - kPrefix.size());
  std::ranges::transform(name, name.begin(), [](char c) {
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (name == "--rope-scaling-type") name = "--rope-scaling";
  const bool known = std::ranges::find(kLlamaCpp, name) != kLlamaCpp.end();
  return known ? std::pair{name, word.substr(equals + 1)} : std::pair<std::string, std::string>{};
}

bool mentions(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words,
                             [&](const char* w) { return text.find(w) != std::string::npos; });
}

// The long name of a flag, as llama.cpp and vLLM resolve it: _ is equal to -, and some names are
// short.
std::string long_name(std::string name) {
  std::ranges::replace(name, '_', '-');
  static const std::map<std::string, std::string> all = {
      {"-c", "--ctx-size"}, {"-gan", "--grp-attn-n"}, {"-gaw", "--grp-attn-w"}};
  const auto found = all.find(name);
  return found == all.end() ? name : found->second;
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

CommandLine::CommandLine(const std::string& text) : words_(words_of(text)) {
  while (next_ < words_.size() && !is_flag(words_[next_])) ++next_;  // skips programs and models
  while (next_ < words_.size()) read_flag();
  // In llama.cpp a flag overrides its environment variable.
  for (const std::string& word : words_) {
    const auto [name, value] = from_environment(word);
    if (!name.empty()) all_.emplace(name, value);
  }
}

bool CommandLine::is_vllm() const {
  return has("--rope-theta") || has("--hf-overrides") || has("--max-model-len") ||
         !dotted_.empty() || (has("--rope-scaling") && all_.at("--rope-scaling").starts_with("{"));
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
  if (next_ < words_.size() && !is_flag(words_[next_])) {
    fail("flags: expected a flag, but got \"" + words_[next_].substr(0, 60) + "\"");
  }
}

void CommandLine::pass_over(const std::string& name, const std::string& word) {
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

}  // namespace sextant
