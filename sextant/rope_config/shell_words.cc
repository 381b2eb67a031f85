#include "sextant/rope_config/shell_words.h"

#include <cmath>
#include <exception>
#include <string_view>

#include "sextant/base/error.h"

namespace sextant {
namespace {

// Whether a backslash escapes the next character, as in a shell: within double quotes, and before a
// quote outside of quotes.
bool is_escape(const std::string& text, size_t at, char quote) {
  if (text[at] != '\\' || at + 1 == text.size() || quote == '\'') return false;
  const std::string_view escaped = quote == '"' ? "\"\\$`" : "\"'";
  return escaped.find(text[at + 1]) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> shell_words(const std::string& text) {
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

std::vector<std::string> without_shell(std::vector<std::string> words) {
  for (size_t at = 0; at + 2 < words.size() && words[at][0] != '-'; ++at) {
    const std::string program = words[at].substr(words[at].rfind('/') + 1);
    const std::string& option = words[at + 1];
    if ((program != "sh" && program != "bash") || option.size() < 2 || option[0] != '-' ||
        option.back() != 'c') {
      continue;
    }
    const std::vector<std::string> inner = shell_words(words[at + 2]);
    words.resize(at);
    words.insert(words.end(), inner.begin(), inner.end());
    break;
  }
  return words;
}

std::optional<double> parse_number(const std::string& text) {
  try {
    size_t end = 0;
    const double value = std::stod(text, &end);
    if (end == text.size() && std::isfinite(value)) return value;
  } catch (const std::exception&) {  // the exceptions of std::stod carry no more information
  }
  return {};
}

}  // namespace sextant
