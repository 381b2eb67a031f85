// The effect of a rotary configuration in numbers: each pair's frequency before and after the
// stretch, the first distance beyond training, and the error of float32.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

struct PairExplained {
  double frequency = 0, stretched = 0;  // radians per position
  double rotations = 0;                 // within the trained length, as trained
  // The position between "divided by the factor" (0, interpolated) and "kept" (1). NaN if nothing
  // is stretched.
  double kept = 0;
  // The first distance with an angle that training on L tokens never reached. 0 if training reached
  // all angles, since the pair made a full rotation within L, or if no query of these layers sees
  // that far.
  int64_t leaves = 0;
  int axis = 0;  // the row's position that the pair follows: time, height, width
};

struct Explained {
  int64_t trained = 0;        // L; 0: not known
  int64_t target = 0;         // length of the explanation; 0: not known
  double factor = 1;          // divisor of the slowest pair
  double gain = 1;            // multiplies rotated queries and keys
  double scale = 1;           // scores of unrotated channels: 1/sqrt(head_dim) times model factors
  double rotated_scale = 1;   // scores of rotated channels: scale gain^2
  double float32_error = 0;   // maximum for cos and sin over the last positions before the target
  int64_t reach = 0;          // the largest distance in these layers; 0: any
  int64_t first_leaving = 0;  // over all pairs, the first distance beyond training; 0: none
  std::vector<PairExplained> pairs;
};

// length: the target; 0: the target that the configuration itself gives. Throws Error if a number
// is out of range. read_rope_config() has done it for each of its groups.
SEXTANT_API Explained explain(const RopeConfig& config, int64_t length);

// Explained::target, factor and reach alone.
int64_t target_length(const RopeConfig& config, int64_t length);
double stretch_factor(const RopeConfig& config, int64_t length);
int64_t largest_distance(const RopeConfig& config);

// The factor of q·k without the rotation's gain and without score_factor; 0: not known.
SEXTANT_API double plain_scale(const RopeConfig& config);

// A scaling method's usual name ("YaRN", "Llama 3's scaling", ...), its source and its meaning, of
// stretches.json.
struct Named {
  std::string name, source, meaning;
};
SEXTANT_API Named name_of(const RopeScaling& scaling);

// "YaRN"; for layers that do not rotate "NoPE" or the name of their method, "alibi".
SEXTANT_API std::string method_of(const RopeConfig& config);

// "half-split" or "interleaved"; empty if it is not known or nothing rotates.
SEXTANT_API std::string pairing_of(const RopeConfig& config);

// The method's parameters, with defaults filled in: {"factor": 4, "beta_fast": 32, ...}.
SEXTANT_API nlohmann::json parameters_of(const RopeConfig& config);

// "max(1, ln(i + 1) / ln 8192)" for a query at position i; empty if there is no law.
SEXTANT_API std::string law_of(const QueryScale& scale);

// The law of a group's queries, as a formula or in the words of its family; empty if there is none.
SEXTANT_API std::string query_law_of(const RopeConfig& config);

}  // namespace sextant
