// A container is a mapping with a command or variables; all of them are found, whatever lies around
// them, and the one is taken whose words are an engine's.
#include "sextant/rope_config/launch_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/command_line.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/shell_words.h"

namespace sextant {
namespace {

using nlohmann::json;

// In the order of a command line. llama-swap says cmd, Kubernetes args and env.
constexpr std::array kCommands = {"entrypoint", "command", "cmd", "args"};
constexpr std::array kVariables = {"environment", "env"};
constexpr std::array kEngines = {"llama", "vllm", "sglang"};

struct Container {
  std::string name;
  std::vector<std::string> words;
  bool starts_engine = false;
};

// ${NAME:-default} and ${NAME-default} become the default, and $$ becomes $, as in compose.
std::string without_variables(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t end = text.compare(at, 2, "${") == 0 ? text.find('}', at) : std::string::npos;
    const std::string inner = end == std::string::npos ? "" : text.substr(at + 2, end - at - 2);
    const size_t dash = inner.find('-');
    if (dash != std::string::npos) {
      result += inner.substr(dash + 1);
      at = end;
    } else {
      result += text[at];
      if (text.compare(at, 2, "$$") == 0) ++at;
    }
  }
  return result;
}

void add_command(const json& command, std::vector<std::string>& words) {
  if (command.is_string()) {
    const auto more = shell_words(without_variables(command.get<std::string>()));
    words.insert(words.end(), more.begin(), more.end());
  } else if (command.is_array()) {
    for (const json& word : command) {
      if (word.is_string()) words.push_back(without_variables(word.get<std::string>()));
    }
  }
}

// A mapping NAME: value, a list of NAME=value, or Kubernetes' list of name and value.
void add_variables(const json& variables, std::vector<std::string>& words) {
  const auto add = [&](const std::string& name, const json& value) {
    if (value.is_string()) words.push_back(name + "=" + without_variables(value));
  };
  if (variables.is_object()) {
    for (const auto& [name, value] : variables.items()) add(name, value);
  }
  if (!variables.is_array()) return;
  for (const json& item : variables) {
    if (item.is_string()) words.push_back(without_variables(item.get<std::string>()));
    if (item.is_object() && item.contains("name") && item.contains("value") &&
        item.at("name").is_string()) {
      add(item.at("name"), item.at("value"));
    }
  }
}

bool names_engine(const std::string& word) {
  return std::ranges::any_of(kEngines, [&](const char* engine) {
    return word.substr(0, word.find('=')).find(engine) != std::string::npos;
  });
}

// The container of a mapping or a list of words; one without words if it is none.
Container container_of(const json& node, const std::string& name) {
  Container made{.name = name};
  if (node.is_array() && !node.empty()) {
    const bool words = std::ranges::all_of(node, [](const json& item) { return item.is_string(); });
    if (words) add_command(node, made.words);
  }
  if (!node.is_object()) return made;
  const auto is_variable = [](const auto& member) {
    return member.key().starts_with("LLAMA_ARG_");
  };
  const auto members = node.items();
  if (std::any_of(members.begin(), members.end(), is_variable)) add_variables(node, made.words);
  for (const char* key : kVariables) {
    if (node.contains(key)) add_variables(node.at(key), made.words);
  }
  for (const char* key : kCommands) {
    if (node.contains(key)) add_command(node.at(key), made.words);
  }
  if (made.words.empty()) return made;
  const auto image = node.find("image");
  const bool named = std::ranges::any_of(made.words, names_engine) ||
                     (image != node.end() && image->is_string() && names_engine(*image));
  made.starts_engine = named && std::ranges::any_of(made.words, is_flag);
  return made;
}

void find_containers(const json& node, const std::string& name, std::vector<Container>& found) {
  if (Container container = container_of(node, name); !container.words.empty()) {
    container.starts_engine =
        container.starts_engine || std::ranges::any_of(container.words, is_about_positions);
    found.push_back(std::move(container));
    return;
  }
  if (node.is_array()) {
    for (const json& item : node) find_containers(item, name, found);
  } else if (node.is_object()) {
    for (const auto& [key, member] : node.items()) find_containers(member, key, found);
  }
}

// A key at the start of a line, followed by a colon and a space or nothing.
bool begins_with_key(const std::string& line) {
  const size_t quote = line[0] == '"' || line[0] == '\'' ? line.find(line[0], 1) : 0;
  if (quote == std::string::npos) return false;
  const size_t colon = line.find(':', quote);
  if (colon == std::string::npos || colon == 0) return false;
  if (colon + 1 < line.size() && line[colon + 1] != ' ' && line[colon + 1] != '\r') return false;
  return quote > 0
             ? colon == quote + 1
             : std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon),
                           [](char c) {
                             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                    (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
                           }) &&
                   !is_flag(line);
}

}  // namespace

bool looks_like_yaml(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t start = text.find_first_not_of(" \t\r", at);
    const std::string line = start < end ? text.substr(start, end - start) : "";
    at = end + 1;
    if (line.empty() || line[0] == '#' || line[0] == '%' || line.starts_with("---")) continue;
    return line[0] == '[' || line == "-" || line.starts_with("- ") || begins_with_key(line);
  }
  return false;
}

std::vector<std::string> launch_words(const json& file) {
  const bool compose = file.is_object() && file.contains("services");
  std::vector<Container> found;
  find_containers(compose ? file.at("services") : file, "", found);
  std::string names;
  for (const Container& container : found) {
    if (!container.name.empty()) names += (names.empty() ? "" : ", ") + shown(container.name);
  }
  std::erase_if(found, [](const Container& container) { return !container.starts_engine; });
  if (found.size() == 1) return found[0].words;
  if (found.empty()) {
    fail(
        "flags: YAML: expected a container whose command or environment has flags of llama.cpp or "
        "vLLM, but got " +
        (names.empty() ? "none" : names));
  }
  names.clear();
  for (const Container& container : found) {
    names += (names.empty() ? "" : ", ") + shown(container.name);
  }
  fail("flags: YAML: expected one container that starts an engine, but got " +
       std::to_string(found.size()) + ": " + names + "; give the lines of one of them");
}

}  // namespace sextant
