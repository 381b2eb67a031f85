// The complete rotary configuration of a model, which all formats are read into and written from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"
#include "sextant/rope_config/rope_scaling.h"

namespace sextant {

// All formats refuse longer lengths in tokens: the file is damaged.
inline constexpr int64_t kLongestSequence = int64_t{1} << 40;
// All formats refuse heads with more channels.
inline constexpr int64_t kWidestHead = 1 << 14;

// The configuration of a group of identical layers.
struct RopeConfig {
  std::string layers;      // kind of layers if a model has several: "full_attention"; else empty
  std::string model_type;  // as in the file, or a GGUF file's architecture; empty: missing
  int64_t head_dim = 0;    // of queries and keys
  int64_t rotary_dim = 0;  // R, rotated channels, even; 0 if layers do not rotate
  double base = 0;
  int64_t max_length = 0;  // positions that the model supports; 0: missing
  RopeScaling scaling;
  // Rotated channels are separate from the others, as in multi-head latent attention (DeepSeek):
  // head_dim counts both, and engines call rotary_dim the head size.
  bool latent = false;
  // The number of keys that a query sees, itself included, and the size of the chunks to which
  // queries are confined; 0: no limit. `bounded_in`: "5 of 6 layers"; empty: all layers of this
  // group.
  int64_t window = 0, chunk = 0;
  // The window reaches as far to keys after the query; `window` does not count those.
  bool both_sides = false;
  std::string bounded_in = {};
  // Positions within chunks, so that no distance exceeds this: Qwen2.5-1M; 0: none.
  int64_t dual_chunk = 0;
  std::vector<std::string> notes = {};      // other facts about these layers, in words
  std::vector<int64_t> layer_numbers = {};  // indices from 0; empty: not known, or all
  std::string parameters = {};  // the key of its parameters if a file has them by kind of layer
  bool rotates = true;
  std::string instead = {};  // if not rotating: "none", or our name of the method: "alibi"
  std::optional<Pairing> pairing = {};  // empty: not known
  int64_t first_channel = 0;            // the first rotated channel
  // The factor of q k without the rotation's gain and the scaling's score_factor; 0: 1 /
  // sqrt(head_dim).
  double softmax_scale = 0;
  std::string query_law = {};  // in words, if scaling.query_scale cannot express it
  // The length given by an engine's serving option (-c). A max_length equal to it is not a training
  // length. 0: there is no such option.
  int64_t serving_length = 0;
  bool trained_stretched = false;  // trained on max_length positions with the stretch: Gemma 3
};

// "interleaved" or "half-split".
SEXTANT_API std::string order_of(Pairing pairing);

// Values that a user gives beside the file. 0: not given.
struct Overrides {
  double base = 0;
  int64_t head_dim = 0;
  int64_t length = 0;         // the target
  double local_base = 0;      // of layers with a window, in models with a second base
  bool only_missing = false;  // `base` only where the file has none

  bool base_instead(bool in_file) const { return base > 0 && !(in_file && only_missing); }
};

// The frequencies, fastest first, for a sequence of `length` tokens.
SEXTANT_API Spectrum spectrum_of(const RopeConfig& config, int64_t length);

// Whether two groups rotate the same channels by the same frequencies.
SEXTANT_API bool rotate_alike(const RopeConfig& a, const RopeConfig& b);

// The rotating configurations without duplicates in the sense of rotate_alike().
SEXTANT_API std::vector<RopeConfig> distinct_rotations(const std::vector<RopeConfig>& configs);

// The training length of the frequencies: L, or else max_length; 0 if neither is known or
// max_length is a serving length.
SEXTANT_API int64_t trained_length(const RopeConfig& config);

// max_length as written to a configuration: a serving length only if the scaling also has an
// original length, otherwise the training length. 0: not known.
SEXTANT_API int64_t declared_length(const RopeConfig& config);

}  // namespace sextant
