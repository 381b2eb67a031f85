// A scaling of rotary positions, from the fields of Hugging Face's rope_parameters (v5) or
// rope_scaling (v4).
//
//   {"rope_type": "yarn", "factor": 8, "original_max_position_embeddings": 4096}
//
// rope_type (or "type") is default, linear, dynamic, yarn, longrope (su), llama3 or proportional,
// as in Hugging Face; and, without a name there, ntk, ntk-mixed (exponent), by-parts (beta_slow,
// beta_fast), part-ntk, dynamic-linear, dynamic-yarn, dynamic-by-parts, dynamic-ntk and qwen-ntk.
// Where a user names the stretch, pi is linear and dynamic-pi is dynamic-linear; files have
// Hugging Face's names only. Short form: "yarn*8".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/query_scale.h"
#include "sextant/position/stretch/stretch.h"

namespace sextant {

struct RopeScaling {
  std::string type = "default";  // as written; "linear" for pi, "dynamic-linear" for dynamic-pi
  std::variant<Stretch, DynamicStretch> stretch = Stretch{};
  double score_factor = 1;             // multiplies every score, besides 1/sqrt(d): DeepSeek
  QueryScale query_scale = {};         // Ministral
  int64_t original_length = 0;         // L, if the type has one
  std::optional<double> base = {};     // rope_theta, if it is in the object
  std::optional<double> partial = {};  // partial_rotary_factor, if it is in the object
  std::vector<int64_t> sections = {};  // mrope_section
  bool interleaved_sections = false;
  // Ernie 4.5 VL: AxisOrder::kPlaneFirst. Its files have the sections of height, width and time;
  // here time is the first.
  bool plane_first = false;
  std::vector<std::string> warnings = {};

  bool is_dynamic() const { return std::holds_alternative<DynamicStretch>(stretch); }
};

// Whether pairs follow the same axes.
inline bool same_axes(const RopeScaling& a, const RopeScaling& b) {
  return a.sections == b.sections &&
         (a.sections.empty() ||
          (a.interleaved_sections == b.interleaved_sections && a.plane_first == b.plane_first));
}

// Values from outside the object.
struct RopeScalingContext {
  double base = 0;              // 0: it must be in the object
  int64_t pairs = 0;            // rotated pairs; 0: not known, and lists are not compared with it
  int64_t max_length = 0;       // max_position_embeddings; 0: not known
  int64_t original_length = 0;  // original_max_position_embeddings beside the object; 0: missing
  // Whether the outer original length has priority over the object's, for the types for which it
  // does in transformers; and its origin, in words.
  bool outer_first = false;
  std::string original_from = "beside it";
  // Whether mscale_all_dim also scales the scores, as in DeepSeek's models. The object may override
  // it as "scale_scores".
  bool scales_scores = false;
  // Whether the object is from a file that other engines read: fields without effect for its type
  // cause a warning. Otherwise they are errors, since the warning would not be shown.
  bool from_file = false;
};

// Throws an Error that names the field: for an unknown field, a value of the wrong type or out of
// range, or a missing value that has no default. `where` begins the message.
SEXTANT_API RopeScaling read_scaling(const nlohmann::json& object,
                                     const RopeScalingContext& context, const std::string& where);

// "yarn*8" -> {"rope_type": "yarn", "factor": 8}; "dynamic-pi" alone has no factor. Throws Error
// for other text.
SEXTANT_API nlohmann::json scaling_of_words(const std::string& words, const std::string& where);

// The stretch for a sequence of `length` tokens.
SEXTANT_API Stretch stretch_of(const RopeScaling& scaling, int64_t length);

}  // namespace sextant
