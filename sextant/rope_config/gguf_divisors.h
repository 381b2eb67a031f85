// The divisors in a GGUF file's tensors, rope_freqs.weight and LongRoPE's two lists, and the gain
// that goes with them. llama.cpp divides each pair's angle by its divisor and then scales it by
// rope.scaling.*.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf_keys.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// The values of rope.scaling.type, .factor, .attn_factor and .original_context_length (0: missing).
struct GgufFactors {
  std::string type;
  double factor = 1, attention = 1;
  int64_t original = 0;

  bool scales() const { return type != "none" && factor != 1; }
};

// Empty if the file has none. The lists are for lengths up to the original length, and beyond it.
struct GgufDivisors {
  std::vector<double> all, up_to, beyond;
};

GgufDivisors gguf_divisors(GgufKeys& keys, int64_t pairs, std::vector<std::string>& warnings);

// Adds the divisors and the gain to the scaling of `config`, which is none, linear or YaRN.
void take_divisors(GgufKeys& keys, const GgufFactors& factors, const GgufDivisors& divisors,
                   RopeConfig& config, std::vector<std::string>& warnings);

// The scaling of layers that rope.scaling.factor does not affect. `config` has the scaling of the
// other layers, without divisors. row: null if the architecture is not in the table.
RopeScaling unscaled_of(const LlamaCppArchitecture* row, const RopeConfig& config,
                        const GgufFactors& factors, const GgufDivisors& divisors);

// The shortest decimal number that rounds to this float32: 0.1 for 0.1F.
double decimal(double stored);

// Returns 1 for a gain that differs from 1 only by rounding to float32.
double rounded_gain(double gain);

}  // namespace sextant
