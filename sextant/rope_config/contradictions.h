// Contradictions of a file with its model_type, with its other objects, and with the given options.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/language_model.h"
#include "sextant/rope_config/layer_facts.h"

namespace sextant {

// Positions that a file states, though its type's code has others.
struct StatedPositions {
  bool rotates = false;  // by the general meaning of its fields
  std::string instead;   // else
  std::string warning;   // names both
};

// Of a type that never rotates; none: the file has nothing against it.
std::optional<StatedPositions> stated_positions(const nlohmann::json& config, const Family& family,
                                                const std::string& type);

// Fields about rotation outside the language model's object, or in an object that is none.
void say_other_places(const nlohmann::json& config, const LanguageModel& model, RopeConfig& first);

// Options against fields of the file.
void say_options(ModelFields& fields, const RopeParameters& parameters);

// Unknown fields about rotary positions or head sizes are refused, since they may change
// everything.

// Throws an Error that names all unknown fields, the most important ones first.
void refuse_unknown_fields(const nlohmann::json& config, const Family* family,
                           const std::string& where);

}  // namespace sextant
