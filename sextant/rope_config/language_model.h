// Where in a config.json the language model's fields are: models that see and hear keep them apart.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

struct LanguageModel {
  const nlohmann::json* config = nullptr;  // within the file's object
  std::string place;       // "text_config", "thinker_config.text_config"; "": the whole
  std::string model_type;  // by which its family is known; "": not said
};

// Throws Error that lists the objects which look like a language model, if there are several.
LanguageModel find_language_model(const nlohmann::json& config);

}  // namespace sextant
