// The position of the language model's fields in a config.json; multimodal models have an object
// for them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sextant {

struct LanguageModel {
  const nlohmann::json* config = nullptr;  // within the file's object
  std::string place;       // "text_config", "thinker_config.text_config"; "": the whole file
  std::string model_type;  // identifies its family; "": not given
};

// The value at the dotted place "a.b" of an object, "": the object itself. nullptr: there is none.
const nlohmann::json* at_place(const nlohmann::json& config, std::string_view place);

// Throws an Error that lists the objects which look like a language model if there are several.
LanguageModel find_language_model(const nlohmann::json& config);

}  // namespace sextant
