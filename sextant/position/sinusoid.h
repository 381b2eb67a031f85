// Sinusoidal positions (Vaswani et al. 2017, arXiv 1706.03762), in the layouts that codes have
// given them. They do not mix: a model trained with one cannot read another.
//
//   kInterleaved    sin(k w_0), cos(k w_0), sin(k w_1), cos(k w_1), ...
//                   w_f = max_timescale^(-2f / width)
//   kConcatenated   sin(k w_0), sin(k w_1), ..., cos(k w_0), cos(k w_1), ...
//                   the same w_f
//   kTensor2Tensor  the columns of kConcatenated
//                   w_f = min_timescale (min_timescale / max_timescale)^(f / (width / 2 - 1))
//
// The first is the paper's, the second Transformer-XL's and XLNet's, the third tensor2tensor's and
// TENER's, and fairseq's at positions of its own. min_timescale multiplies the speeds, so with any
// value but 1 it is no timescale: that is how tensor2tensor computes it. An odd width gets a last
// column of zeros; at width 2 the third layout has one speed, min_timescale, where fairseq and
// TENER divide by zero.
//
// Angles are exact turns: rows are right at any position, where float32 angles are off by 2e-4 at
// 2^17. Not here: the sqrt(width) by which some codes multiply token embeddings before they add.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/position/turns.h"

namespace sextant {

enum class SinusoidLayout { kInterleaved, kConcatenated, kTensor2Tensor };

// By the name that users know it by: "interleaved", "concatenated" or "tensor2tensor". Throws
// Error, which begins with `where`, for any other.
SinusoidLayout sinusoid_layout(std::string_view name, const std::string& where);

// How a text gets its rows: by one of these layouts, or as "fairseq", which has tensor2tensor's and
// leaves those of low positions to padding.
struct TextSinusoid {
  SinusoidLayout layout = SinusoidLayout::kInterleaved;
  bool fairseq = false;

  // Of a text's first token; fairseq's dictionaries have padding at 1.
  int64_t first_position(int64_t padding_token = 1) const {
    return fairseq ? padding_token + 1 : 0;
  }
};
TextSinusoid text_sinusoid(std::string_view name, const std::string& where);
// All names of text_sinusoid(), with commas between.
std::string text_sinusoid_names();

struct SinusoidOptions {
  int64_t width = 0;
  SinusoidLayout layout = SinusoidLayout::kInterleaved;
  double max_timescale = 10000;  // the paper's base
  double min_timescale = 1;      // kTensor2Tensor only
  // The row of this position is zeros: fairseq's padding_idx.
  std::optional<int64_t> padding_position = std::nullopt;
};

// Throws Error if width is below 1, if kConcatenated has an odd width (Transformer-XL gives it
// none), if a timescale is not finite and above 0, or if another layout than kTensor2Tensor has a
// min_timescale.
class Sinusoid {
 public:
  explicit Sinusoid(const SinusoidOptions& options);

  int64_t width() const { return options_.width; }
  const std::vector<Turns>& speeds() const { return speeds_; }  // [width / 2]

  // row: [width]. The position may have any sign: relative methods ask for distances.
  void write_row(int64_t position, std::span<double> row) const;
  // [positions, width], row by row.
  std::vector<double> rows(std::span<const int64_t> positions) const;
  // The same for `count` positions first, first + step, ... Each angle is the sum of that of the
  // row a multiple of 64 before it and of one of 64 others: few are computed, the rest are sums of
  // angles by four products, within 2^-51 of exact.
  std::vector<double> rows(int64_t first, int64_t count, int64_t step = 1) const;
  // The same into `rows`, [count, width].
  void write_rows(int64_t first, int64_t count, int64_t step, std::span<double> rows) const;

 private:
  struct Angles {
    std::vector<double> sin, cos;  // [width / 2]
  };
  Angles angles(int64_t position) const;

  SinusoidOptions options_;
  std::vector<Turns> speeds_;
};

// fairseq's positions: padding stands at padding_token, the n-th real token (from 1) at
// padding_token + n. Give padding_token as padding_position too.
std::vector<int64_t> fairseq_positions(std::span<const int64_t> tokens, int64_t padding_token);

}  // namespace sextant
