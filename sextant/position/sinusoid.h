// Sinusoidal positions (Vaswani et al. 2017, arXiv 1706.03762), in the layouts of published
// implementations. The layouts are incompatible: a model trained with one cannot use another.
//
//   kInterleaved    sin(k w_0), cos(k w_0), sin(k w_1), cos(k w_1), ...
//                   w_f = max_timescale^(-2f / width)
//   kConcatenated   sin(k w_0), sin(k w_1), ..., cos(k w_0), cos(k w_1), ...
//                   the same w_f
//   kTensor2Tensor  the columns of kConcatenated
//                   w_f = min_timescale (min_timescale / max_timescale)^(f / (width / 2 - 1))
//
// The first layout is the paper's. The second is Transformer-XL's and XLNet's. The third is
// tensor2tensor's and TENER's, and fairseq's, which counts positions differently
// (fairseq_positions()). min_timescale multiplies the frequencies, as in tensor2tensor, so with any
// value but 1 it is not a timescale. An odd width has a last column of zeros; at width 2 the third
// layout has one frequency, min_timescale, where fairseq and TENER divide by zero.
//
// Angles are exact turns, so rows are accurate at any position, where float32 angles are off by
// 2e-4 at 2^17. The factor sqrt(width) by which some implementations multiply token embeddings
// before the sum is not applied here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/turns.h"

namespace sextant {

enum class SinusoidLayout { kInterleaved, kConcatenated, kTensor2Tensor };

// Parses a layout's user-visible name: "interleaved", "concatenated" or "tensor2tensor". Throws
// Error, with a message that begins with `where`, for any other name.
SEXTANT_API SinusoidLayout sinusoid_layout(std::string_view name, const std::string& where);

// The sinusoids of a sequence: one of the layouts above, or "fairseq", which is tensor2tensor's
// layout with the rows of low positions reserved for padding.
struct TextSinusoid {
  SinusoidLayout layout = SinusoidLayout::kInterleaved;
  bool fairseq = false;

  // The position of a sequence's first token; padding is token 1 in fairseq's dictionaries.
  int64_t first_position(int64_t padding_token = 1) const {
    return fairseq ? padding_token + 1 : 0;
  }
};
SEXTANT_API TextSinusoid text_sinusoid(std::string_view name, const std::string& where);
// All names that text_sinusoid() accepts, separated by commas.
SEXTANT_API std::string text_sinusoid_names();

struct SinusoidOptions {
  int64_t width = 0;
  SinusoidLayout layout = SinusoidLayout::kInterleaved;
  double max_timescale = 10000;  // the paper's base
  double min_timescale = 1;      // kTensor2Tensor only
  // The row of this position is zero: fairseq's padding_idx.
  std::optional<int64_t> padding_position = std::nullopt;
};

// Computes rows of sinusoids. Throws Error if width is below 1, if kConcatenated has an odd width
// (Transformer-XL does not define one), if a timescale is not finite and above 0, or if a layout
// other than kTensor2Tensor has a min_timescale.
class SEXTANT_API Sinusoid {
 public:
  explicit Sinusoid(const SinusoidOptions& options);

  int64_t width() const { return options_.width; }
  const std::vector<Turns>& frequencies() const { return frequencies_; }  // [width / 2]

  // row: [width]. The position may have any sign: relative methods pass distances.
  void write_row(int64_t position, std::span<double> row) const;
  // Returns [positions, width], row-major.
  std::vector<double> rows(std::span<const int64_t> positions) const;
  // The same for `count` positions first, first + step, ... An angle is the sum of the angle of
  // every 64th row and of one of 64 offsets. Few sines and cosines are computed; the rest follow
  // from the addition theorem with four products, within 2^-51 of exact.
  std::vector<double> rows(int64_t first, int64_t count, int64_t step = 1) const;
  // The same, written to `rows`, [count, width].
  void write_rows(int64_t first, int64_t count, int64_t step, std::span<double> rows) const;

 private:
  struct Angles {
    std::vector<double> sin, cos;  // [width / 2]
  };
  Angles angles(int64_t position) const;

  SinusoidOptions options_;
  std::vector<Turns> frequencies_;
};

// fairseq's positions: padding has position padding_token, and the n-th real token (from 1) has
// padding_token + n. Pass padding_token as padding_position too.
SEXTANT_API std::vector<int64_t> fairseq_positions(std::span<const int64_t> tokens,
                                                   int64_t padding_token);

}  // namespace sextant
