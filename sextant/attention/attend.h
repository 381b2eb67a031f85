// The two functions that are attention, and the backends that carry them out.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant {

// A backend is a value with a name, so that it can be listed, chosen and tested against another.
// A null function: that scalar type is not served.
struct Backend {
  std::string_view name;
  std::string_view description;
  // What q, k, weights and v are rounded to before they are multiplied; kWide: they are not.
  Format products = Format::kWide;
  // Whether bits of a query's result depend on the query and on what it sees alone, and not on what
  // is computed beside it: then a token decoded has those that it has in the whole text.
  bool batch_invariant = true;
  void (*attend_f32)(const Score<float>&, const Attended<float>&, const Executor&) = nullptr;
  void (*attend_backward_f32)(const Score<float>&, const Attended<const float>&,
                              AnyView<const float> d_out, const ScoreGrad<float>&,
                              const Executor&) = nullptr;
  void (*attend_f64)(const Score<double>&, const Attended<double>&, const Executor&) = nullptr;
  void (*attend_backward_f64)(const Score<double>&, const Attended<const double>&,
                              AnyView<const double> d_out, const ScoreGrad<double>&,
                              const Executor&) = nullptr;
};

const Backend& reference_backend();  // float64 inside, naive: the oracle
const Backend& cpu_backend();        // float32, SIMD, tiled, threaded
// As that, but forward q (times scale) and k, once they are turned, weights and v are rounded to
// bfloat16, and products of those are added up in float32: up to twice as fast where the machine
// multiplies bfloat16 (AMX, AVX512_BF16, or NEON's BF16 with Highway 1.2 or later), and slower than
// cpu elsewhere. Each weight and value is off by up to 2^-9 of itself and each score by 2^-8 scale
// |q| |k|, and of what is bfloat16 already by nothing; numbers of q and k beyond 3.39e38 are
// infinite. Tables and biases are as in cpu, and so are few queries (8 at most, at once with a
// group's heads), which are bound by memory, so that a token decoded has other bits than in the
// whole text. Backward it is cpu.
const Backend& cpu_bfloat16_backend();
bool multiplies_bfloat16();  // whether this machine, in this build, has an instruction for it

// As cpu, within the same bounds, with products of float32 by Intel's AMX where the machine has it,
// and else cpu. Each number is the exact sum of three bfloat16, and products of those are added up
// in float32. Causal texts of 2048 take 0.67 to 0.76 of the time forward and 0.80 to 0.94 backward
// (Granite Rapids), of 256 as long, and shorter ones longer. Few queries (8 at most), and blocks
// with numbers that have no such parts (infinities, NaN, beyond 3.39e38 or smaller than 2^-100),
// are as in cpu, so that a token decoded has other bits than in the whole text. Tables and moduli
// are multiplied as in cpu. Of weights and score gradients below 2^-102 some of the last bits are
// lost.
const Backend& cpu_bf16x3_backend();
bool multiplies_by_amx();  // whether this machine has it, as its system allows it to be used

std::span<const Backend* const> backends();
const Backend& backend(std::string_view name);  // throws Error that lists the names there are

// Throw Error that names the operand if shapes, frames, runs or maps do not fit, or if the backend
// does not serve T. Nothing is written then. The backward pass goes by the `out` it is given: if
// that was rounded to 16 bits, so are gradients of scores off by p_ij times d_out . (what it was
// rounded by).
template <class T>
void attend(const Score<T>& score, const Attended<T>& result, const Backend& backend,
            const Executor& executor);
template <class T>
void attend_backward(const Score<T>& score, const Attended<const T>& result,
                     std::type_identity_t<AnyView<const T>> d_out, const ScoreGrad<T>& grad,
                     const Backend& backend, const Executor& executor);

}  // namespace sextant
