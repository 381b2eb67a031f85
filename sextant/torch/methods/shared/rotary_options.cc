#include "sextant/torch/methods/shared/rotary_options.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sextant/position/axes.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

std::vector<int64_t> sections_of(const Options& options) {
  std::vector<int64_t> sections = options.integers("sections", 1, 1 << 20);
  if (sections.empty()) options.refuse("sections", "the pairs of each axis");
  return sections;
}

at::Tensor indices(const Spectrum& spectrum, int Spectrum::Pair::*field) {
  at::Tensor result = at::empty({static_cast<int64_t>(spectrum.pairs.size())}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Spectrum::Pair& pair : spectrum.pairs) *to++ = pair.*field;
  return result;
}

}  // namespace

size_t axes_choice(const Options& options) {
  return options.choice("axes", {"one", "blocks", "interleaved", "restart", "restart-interleaved",
                                 "strided", "plane-first"});
}

bool breaks_ladder(const Options& options) {
  const size_t axes = axes_choice(options);
  return axes >= 3 && axes <= 5;
}

Spectrum rotary_ladder(const Options& options, int64_t head_dim) {
  const int64_t dim = options.integer_or("dim", head_dim, 0, head_dim);
  if (dim % 2 != 0) options.refuse("dim", "an even number");
  const double base = options.number("base", 1e-3, 1e30);
  Spectrum spectrum = rotary(
      {.dim = dim,
       .base = base,
       .pairing = options.choice("pairing", {"half-split", "interleaved"}) == 0
                      ? Pairing::kHalfSplit
                      : Pairing::kInterleaved,
       .first_column = options.choice("columns", {"first", "last"}) == 0 ? 0 : head_dim - dim});
  const size_t axes = axes_choice(options);
  if (axes == 0 && !options.integers("sections", 1, 1 << 20).empty())
    options.refuse("sections", "none, as axes is \"one\"");
  if (axes == 0) return spectrum;
  const auto order = static_cast<AxisOrder>(axes - 1);
  if (breaks_ladder(options) && options.flag("float32_frequencies"))
    options.refuse("float32_frequencies", "false, as axes do not share one ladder of frequencies");
  return follow_axes(std::move(spectrum), sections_of(options), order, base);
}

Spectrum rotary_spectrum(const Options& options, int64_t head_dim) {
  Spectrum spectrum = rotary_ladder(options, head_dim);
  if (options.flag("float32_frequencies")) spectrum = with_float32_frequencies(std::move(spectrum));
  const bool clock = options.choice("sense", {"counter-clockwise", "clockwise"}) == 1;
  return clock ? clockwise(std::move(spectrum)) : spectrum;
}

int64_t axes_of(const Spectrum& spectrum) {
  int axis = 0;
  for (const Spectrum::Pair& pair : spectrum.pairs) axis = std::max(axis, pair.axis);
  return axis + 1;
}

std::string rotary_defaults(const std::string& pairing) {
  return (R"({"dim": null, "columns": "first", "base": 10000.0, "pairing": ")" + pairing)
      .append(R"(", "sense": "counter-clockwise", "float32_frequencies": false, )"
              R"("axes": "one", "sections": [])");
}

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                   const Spectrum& spectrum) {
  const at::Tensor first = on_device_of(x, indices(spectrum, &Spectrum::Pair::first));
  const at::Tensor second = on_device_of(x, indices(spectrum, &Spectrum::Pair::second));
  const at::Tensor a = x.index_select(3, first), b = x.index_select(3, second);
  return x.index_copy(3, first, a * cos - b * sin).index_copy(3, second, a * sin + b * cos);
}

at::Tensor positions_of_pairs(const at::Tensor& rotary_positions, const Spectrum& spectrum) {
  const at::Tensor axes = on_device_of(rotary_positions, indices(spectrum, &Spectrum::Pair::axis));
  return rotary_positions.index_select(1, axes).transpose(1, 2).unsqueeze(1).to(at::kDouble);
}

}  // namespace sextant
