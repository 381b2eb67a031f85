// The change of a model's rotary positions, in the words of Hugging Face's rope_parameters (v5)
// or rope_scaling (v4), and what it means.
//
//   {"rope_type": "yarn", "factor": 8, "original_max_position_embeddings": 4096}
//
// rope_type (or "type"): default, linear, dynamic, yarn, longrope (su), llama3, proportional, as in
// Hugging Face; and what it has no name for: ntk, ntk-mixed (exponent), by-parts (beta_slow,
// beta_fast), part-ntk, dynamic-linear, dynamic-yarn, dynamic-by-parts, dynamic-ntk and qwen-ntk.
// Short: "yarn*8".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sextant/position/query_scale.h"
#include "sextant/position/stretch/stretch.h"

namespace sextant {

struct RopeScaling {
  std::string type = "default";  // as it was written
  std::variant<Stretch, DynamicStretch> stretch = Stretch{};
  double score_factor = 1;             // multiplies every score, besides 1/sqrt(d): DeepSeek
  QueryScale query_scale = {};         // Ministral
  int64_t original_length = 0;         // L, where the type has one
  std::optional<double> base = {};     // rope_theta, if it stands here
  std::optional<double> partial = {};  // partial_rotary_factor, if it stands here
  std::vector<int64_t> sections = {};  // mrope_section
  bool interleaved_sections = false;
  std::vector<std::string> warnings = {};

  bool is_dynamic() const { return std::holds_alternative<DynamicStretch>(stretch); }
};

// Values that the object does not have itself.
struct RopeScalingContext {
  double base = 0;              // 0: it must be in the object
  int64_t pairs = 0;            // that turn; 0: not known, and lists are not compared with it
  int64_t max_length = 0;       // max_position_embeddings; 0: not known
  int64_t original_length = 0;  // original_max_position_embeddings beside the object; 0: not there
  // It goes before the one in the object, for the types where transformers does so; and where it is
  // from, in words.
  bool outer_first = false;
  std::string original_from = "beside it";
  // mscale_all_dim scales the scores, too: DeepSeek's models. The object may say it, as
  // "scale_scores".
  bool scales_scores = false;
  // The object is from a file that other engines read: words that do nothing with its type are
  // warned of. Elsewhere they are errors, since no reader would see the warning.
  bool from_file = false;
};

// Throws Error that names the field: an unknown one, one of another type or out of range, or one
// that is missing and cannot be known. `where` begins the message.
RopeScaling read_scaling(const nlohmann::json& object, const RopeScalingContext& context,
                         const std::string& where);

// "yarn*8" -> {"rope_type": "yarn", "factor": 8}; "linear" alone has no factor. Throws Error if it
// is neither.
nlohmann::json scaling_of_words(const std::string& words, const std::string& where);

// The stretch of a text of `length` tokens.
Stretch stretch_of(const RopeScaling& scaling, int64_t length);

}  // namespace sextant
