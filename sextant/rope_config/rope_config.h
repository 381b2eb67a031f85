// One model's rotary positions with nothing left open: what every dialect is read into and written
// from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sextant/position/spectrum.h"
#include "sextant/rope_config/rope_scaling.h"

namespace sextant {

// Lengths in tokens above this are refused in every format: the file is damaged.
inline constexpr int64_t kLongestSequence = int64_t{1} << 40;
// So are heads of more channels.
inline constexpr int64_t kWidestHead = 1 << 14;

// Of a group of layers that are alike.
struct RopeConfig {
  std::string
      layers;  // the kind of layers, where a model has several: "full_attention"; else empty
  std::string
      model_type;        // as the file has it, or the architecture of a GGUF file; empty: not said
  int64_t head_dim = 0;  // of queries and keys
  int64_t rotary_dim = 0;  // R, channels that are rotated: even; 0 where layers do not rotate
  double base = 0;
  int64_t max_length = 0;  // positions that the model is said to read; 0: not said
  RopeScaling scaling;
  // Channels that are rotated stand apart from the others, as in multi-head latent attention
  // (DeepSeek): head_dim counts both, and engines call rotary_dim the size of the head.
  bool latent = false;
  // How many keys a query sees, itself included, and how long the chunks are that it does not look
  // out of; 0: no such bound. `bounded_in`: "5 of 6 layers"; all of this group if it is empty.
  int64_t window = 0, chunk = 0;
  std::string bounded_in = {};
  // Positions are taken within chunks, so that no distance is beyond this: Qwen2.5-1M; 0: they are
  // not.
  int64_t dual_chunk = 0;
  std::vector<std::string> notes = {};      // what else is known about these layers, in words
  std::vector<int64_t> layer_numbers = {};  // from 0; empty: not known, or all
  std::string parameters = {};  // the key of its parameters, where a file has them by kind of layer
  bool rotates = true;
  std::string instead = {};  // where it does not: "none", or the name of our method: "alibi"
  std::optional<Pairing> pairing = {};  // none: not known
  int64_t first_channel = 0;            // of those that are rotated
  // Multiplies q k, besides the rotation's gain and the scaling's score_factor; 0: 1 /
  // sqrt(head_dim).
  double softmax_scale = 0;
  std::string query_law = {};  // in words, where scaling.query_scale cannot say it
  // The length of an engine's option for serving (-c), up to which one reads. A max_length that
  // equals it says nothing of training. 0: there is no such option.
  int64_t serving_length = 0;
  bool trained_stretched = false;  // on max_length positions, with the stretch: Gemma 3
};

// "interleaved" or "half-split".
std::string order_of(Pairing pairing);

// Values that a user gives besides the file. 0: none.
struct Overrides {
  double base = 0;
  int64_t head_dim = 0;
  int64_t length = 0;     // the target
  double local_base = 0;  // of layers with a window, in models that give them another one
};

// The frequencies, fastest first, at a text of `length` tokens.
Spectrum spectrum_of(const RopeConfig& setting, int64_t length);

// Whether two groups rotate alike: the same channels by the same frequencies.
bool rotate_alike(const RopeConfig& a, const RopeConfig& b);

// The rotating configurations, one of each that rotate alike.
std::vector<RopeConfig> distinct_rotations(const std::vector<RopeConfig>& settings);

// The length that the frequencies were trained on: L, or else max_length; 0: neither is known, or
// max_length is one for serving.
int64_t trained_length(const RopeConfig& setting);

// max_length as a configuration says it: a length for serving only where the scaling names an
// original length beside it, and else the trained length. 0: not known.
int64_t declared_length(const RopeConfig& setting);

}  // namespace sextant
