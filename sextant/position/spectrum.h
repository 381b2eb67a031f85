// A spectrum: how fast each pair of channels turns with position.
//
// RoPE (Su et al. 2021, arXiv 2104.09864) turns pair f of a query or key at position t by t *
// theta_f,
//
//   (x1, x2) -> (x1 cos a - x2 sin a, x1 sin a + x2 cos a),   a = t * theta_f,  theta_f =
//   base^(-2f/R)
//
// XPOS (Sun et al. 2022, arXiv 2212.10554) also grows the pair, by e^{growth t} for queries and
// e^{-growth t} for keys. Every stretch of the context (PI, NTK, YaRN, ...) maps a spectrum to a
// spectrum; none of them ever sees a tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/position/double_double.h"
#include "sextant/position/turns.h"

namespace sextant {

// Which channels make a pair, of R rotated ones.
enum class Pairing {
  kInterleaved,  // (2f, 2f + 1): the paper, GPT-J, Meta's Llama weights, GGUF "NORM"
  kHalfSplit,    // (f, f + R/2): GPT-NeoX, Hugging Face Llama, GGUF "NEOX"
};

struct Spectrum {
  struct Pair {
    int first = 0, second = 0;  // columns of q and k
    Real speed = {};            // radians per position
    double growth = 0;          // natural log per position; XPOS only
    int axis = 0;               // which of a row's times it follows; 0 but for multi-axis methods
  };
  std::vector<Pair> pairs;
  double gain = 1;  // multiplies every turned channel of q and of k, so a score by gain^2 (YaRN)
};

struct RotaryOptions {
  int64_t dim = 0;  // R, the number of rotated channels: even, at most the head size
  double base = 10000;
  Pairing pairing = Pairing::kHalfSplit;
  int64_t first_column = 0;  // where the rotated channels start (DeepSeek-V4 turns the last ones)
  // The exact speed rounded once to float32, which checkpoints trained with a float32 table
  // learned. Frameworks get there through powf and a division, up to 1.3 ulp away; where a
  // checkpoint stores its speeds (inv_freq), put those into Pair::speed.
  bool float32_speeds = false;
};

// RoPE's spectrum, fastest pair first. Throws Error if dim is odd or negative, first_column is
// negative, or base is not finite and above 0.
Spectrum rotary(const RotaryOptions& options);

// Speeds rounded once to float32, as RotaryOptions::float32_speeds says; for use after a stretch.
Spectrum with_float32_speeds(Spectrum spectrum);

// The same pairs turned the other way, y1 = x1 cos + x2 sin: nanochat, modded-nanogpt, GRAPE.
Spectrum clockwise(Spectrum spectrum);

// XPOS: pair f of n grows by zeta_f^(t / scale_base), zeta_f = (f/n + gamma) / (1 + gamma), which
// is below 1: a score falls by zeta_f^(d / scale_base) with distance d. The paper has gamma 0.4,
// scale_base 512. Throws Error unless both are finite and above 0.
Spectrum with_xpos(Spectrum spectrum, double gamma, double scale_base);

// A spectrum made ready for kernels: speeds as exact turns.
struct Rotation {
  struct Pair {
    int first = 0, second = 0;
    Turns speed = {};
    double growth = 0;
    int axis = 0;
  };
  std::vector<Pair> pairs;
  double gain = 1;
};

Rotation rotation(const Spectrum& spectrum);

// Radians, reduced to one turn: within 2^-127 turns of the exact quotient by 2 pi. Throws Error
// unless they are finite and below 2^64.
Turns turns(Real radians);

}  // namespace sextant
