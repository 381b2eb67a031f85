// One model's rotary positions with nothing left open: what every dialect is read into and written from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/position/spectrum.h"
#include "sextant/setting/scaling.h"

namespace sextant {

struct RotarySetting {
  std::string layers;  // which, where a model has several settings: "full_attention"; else empty
  std::string model_type;  // as the file has it; empty: not said
  int64_t head_dim = 0;    // of queries and keys, by which scores are scaled
  int64_t rotary_dim = 0;  // R, of which turn: even
  double base = 0;
  int64_t max_length = 0;  // positions that the model is said to read; 0: not said
  Scaling scaling;
};

// What a user says besides the file. 0: nothing.
struct Overrides {
  double base = 0;
  int64_t head_dim = 0;
  int64_t length = 0;  // the target
};

// The frequencies, fastest first, at a text of `length` tokens.
Spectrum spectrum_of(const RotarySetting& setting, int64_t length);

// The length that the frequencies were trained on: L, or else max_length; 0: neither is known.
int64_t trained_length(const RotarySetting& setting);

}  // namespace sextant
