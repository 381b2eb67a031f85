// Launch lines of engines in files of YAML: docker compose, Kubernetes, llama-swap.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace sextant {

// Whether text begins as YAML does: with a key and a colon, an item of a list or a list in
// brackets.
bool looks_like_yaml(const std::string& text);

// The words of the one container in the file that starts an engine: its variables, as NAME=value,
// and its command. The file is as read_yaml() reads it. A variable of compose with a default,
// ${NAME:-4096}, is taken for its default. Throws Error if no container starts an engine or several
// do.
std::vector<std::string> launch_words(const nlohmann::json& file);

}  // namespace sextant
