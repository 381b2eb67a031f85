// Tables of encodings as operators for Python: slopes, buckets, sinusoids, spectra and their exact
// cosines. None is differentiable; all results are float64 or int64 on the CPU.
//
// Positions that are computed from parameters, as operators for Python. They are ordinary tensor
// code, which autograd records.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sin.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/position/binary.h"
#include "sextant/position/buckets.h"
#include "sextant/position/clock.h"
#include "sextant/position/query_scale.h"
#include "sextant/position/sandwich.h"
#include "sextant/position/sinusoid.h"
#include "sextant/position/slopes.h"
#include "sextant/position/spectrum.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/torch/methods/shared/complex_words.h"
#include "sextant/torch/methods/shared/recurrences.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

std::span<const int64_t> integers(const std::string& name, const at::Tensor& x) {
  if (x.scalar_type() != at::kLong || !x.is_contiguous() || !x.is_cpu())
    fail(name + ": expected a contiguous int64 tensor on the CPU");
  return {x.data_ptr<int64_t>(), static_cast<size_t>(x.numel())};
}

// Slopes interpolated from train_length to length, or not if both are 0.
at::Tensor slopes(int64_t heads, double max_bias, int64_t train_length, int64_t length) {
  const double scale =
      train_length == 0 && length == 0 ? 1 : interpolated_slope(train_length, length);
  return tensor_of(alibi_slopes(heads, max_bias), {heads}) * scale;
}

// [heads, distances]. strength: one factor for all heads, or none.
at::Tensor sandwich_bias(const at::Tensor& distances, int64_t heads, int64_t width, int64_t first,
                         c10::optional<double> strength, double ratio) {
  const std::vector<double> curve =
      sandwich_curve(integers("sandwich_bias: distances", distances), width, first);
  std::vector<double> factors = sandwich_slopes(heads, ratio);
  if (strength) {
    if (!(*strength > 0 && std::isfinite(*strength)))
      fail("sandwich_bias: strength: expected a finite number above 0, but got " +
           std::to_string(*strength));
    if (ratio != kSandwichRatio)
      fail("sandwich_bias: ratio: expected 8, the default, beside strength, but got " +
           std::to_string(ratio));
    std::ranges::fill(factors, *strength);
  }
  return tensor_of(factors, {heads, 1}) * tensor_of(curve, {1, static_cast<int64_t>(curve.size())});
}

template <class F>
at::Tensor mapped(const std::string& name, const at::Tensor& distances, F&& f) {
  const std::span<const int64_t> from = integers(name + ": distances", distances);
  at::Tensor result = at::empty(distances.sizes(), at::kLong);
  std::ranges::transform(from, result.data_ptr<int64_t>(), f);
  return result;
}

at::Tensor t5_buckets(const at::Tensor& distances, int64_t buckets, int64_t max_distance,
                      bool bidirectional) {
  const T5Buckets rule({buckets, max_distance, bidirectional});
  return mapped("t5_buckets", distances, [&](int64_t d) { return rule.bucket(d); });
}

at::Tensor deberta_rows(const at::Tensor& distances, int64_t buckets, int64_t max_positions,
                        bool microsoft) {
  using Flavour = DebertaBuckets::Flavour;
  const DebertaBuckets rule(
      {buckets, max_positions, microsoft ? Flavour::kMicrosoft : Flavour::kHuggingFace});
  return mapped("deberta_rows", distances, [&](int64_t d) { return rule.row(d); });
}

at::Tensor sinusoid(const at::Tensor& positions, int64_t width, const std::string& layout,
                    double max_timescale, double min_timescale) {
  const Sinusoid rule({.width = width,
                       .layout = sinusoid_layout(layout, "sinusoid: layout"),
                       .max_timescale = max_timescale,
                       .min_timescale = min_timescale});
  return tensor_of(rule.rows(integers("sinusoid: positions", positions)),
                   {positions.numel(), width});
}

at::Tensor clock(const at::Tensor& positions, at::IntArrayRef periods) {
  const std::vector<int64_t> all = periods.vec();
  return tensor_of(clock_rows(all, integers("clock: positions", positions)),
                   {positions.numel(), static_cast<int64_t>(2 * all.size())});
}

at::Tensor alien_clock(const at::Tensor& positions, double ratio, int64_t hands) {
  return tensor_of(alien_clock_rows(ratio, hands, integers("alien_clock: positions", positions)),
                   {positions.numel(), 2 * hands});
}

at::Tensor binary(const at::Tensor& positions, int64_t bits, bool signs) {
  const BinaryLevels levels = signs ? BinaryLevels::kMinusOneOne : BinaryLevels::kZeroOne;
  return tensor_of(binary_rows(bits, levels, integers("binary: positions", positions)),
                   {positions.numel(), bits});
}

// In radians per position, [pairs].
at::Tensor frequencies_of(const Spectrum& spectrum) {
  std::vector<double> frequencies;
  for (const Spectrum::Pair& pair : spectrum.pairs)
    frequencies.push_back(static_cast<double>(pair.frequency));
  return tensor_of(frequencies, {static_cast<int64_t>(frequencies.size())});
}

at::Tensor rope_frequencies(int64_t dim, double base) {
  return frequencies_of(rotary({.dim = dim, .base = base}));
}

// XPOS's growth of each pair per position, natural log, [dim / 2]. xi: the factor per position of
// all pairs, or none.
at::Tensor xpos_growth(int64_t dim, double gamma, double scale_base, c10::optional<double> xi) {
  if (xi && (gamma != kXposGamma || scale_base != kXposScaleBase))
    fail("xpos_growth: gamma, scale_base: expected the defaults beside xi, but got " +
         std::to_string(gamma) + ", " + std::to_string(scale_base));
  const Spectrum plain = rotary({.dim = dim});
  const Spectrum grown = xi ? with_uniform_growth(plain, *xi) : with_xpos(plain, gamma, scale_base);
  std::vector<double> growth;
  for (const Spectrum::Pair& pair : grown.pairs) growth.push_back(pair.growth);
  return tensor_of(growth, {static_cast<int64_t>(growth.size())});
}

// The frequencies [dim / 2], the gain, and a further factor on scores.
std::tuple<at::Tensor, double, double> described(const Spectrum& spectrum, double score_factor) {
  return {frequencies_of(spectrum), spectrum.gain, score_factor};
}

// The same for a stretch in Hugging Face's format and a sequence of `length` tokens.
std::tuple<at::Tensor, double, double> stretched_frequencies(int64_t dim, double base,
                                                             const std::string& stretch,
                                                             int64_t length, int64_t train_length) {
  const nlohmann::json given = json_or_word(stretch);
  const nlohmann::json object =
      given.is_string() ? scaling_of_words(given.get<std::string>(), "stretch") : given;
  const RopeScaling scaling =
      object.is_null()
          ? RopeScaling{}
          : read_scaling(object, {.base = base, .pairs = dim / 2, .original_length = train_length},
                         "stretch");
  if (scaling.partial)
    fail("stretch: expected no partial_rotary_factor, as dim is the rotated part");
  if (!scaling.sections.empty())
    fail("stretch: expected no mrope_section, as these are the frequencies of one axis");
  return described(stretched(rotary({.dim = dim, .base = scaling.base.value_or(base)}),
                             stretch_of(scaling, length)),
                   scaling.score_factor);
}

// The same for the first group of layers of a config.json.
std::tuple<at::Tensor, double, double> config_frequencies(const std::string& config,
                                                          int64_t length) {
  const RopeConfig rope = read_hugging_face(parse_json(config, "config.json"))[0];
  if (!rope.rotates) {
    fail("config.json: model_type: expected a model that rotates queries and keys, but got \"" +
         rope.model_type + "\", which does not");
  }
  return described(spectrum_of(rope, length), rope.scaling.score_factor);
}

at::Tensor query_factors_op(const at::Tensor& positions, const std::string& law, int64_t length,
                            double strength) {
  const std::vector<std::string> names = {"none",  "logn",   "logn-unclipped",
                                          "ssmax", "llama4", "ministral"};
  const auto found = std::ranges::find(names, law);
  if (found == names.end())
    fail(
        "query_factors: law: expected one of none, logn, logn-unclipped, ssmax, llama4, ministral, "
        "but got \"" +
        law + "\"");
  return tensor_of(query_factors({static_cast<QueryLaw>(found - names.begin()), length, strength},
                                 integers("query_factors: positions", positions)),
                   {positions.numel()});
}

// cos and sin of position * theta_f, [positions, dim / 2] each, exact at any position.
std::tuple<at::Tensor, at::Tensor> rope_cos_sin(const at::Tensor& positions, int64_t dim,
                                                double base) {
  const Rotation plan = rotation(rotary({.dim = dim, .base = base}));
  std::vector<double> cosines, sines;
  for (const int64_t position : integers("rope_cos_sin: positions", positions))
    for (const Rotation::Pair& pair : plan.pairs) {
      const CosSin angle = cos_sin(pair.frequency * position);
      cosines.push_back(angle.cos);
      sines.push_back(angle.sin);
    }
  const std::vector<int64_t> sizes = {positions.numel(), static_cast<int64_t>(plan.pairs.size())};
  return {tensor_of(cosines, sizes), tensor_of(sines, sizes)};
}

bool second(const std::string& option, const std::string& value, const char* first,
            const char* other) {
  if (value != first && value != other)
    fail(option + ": expected " + first + " or " + other + ", but got \"" + value + "\"");
  return value == other;
}

at::Tensor floater(const at::Tensor& start, at::TensorList weights, int64_t length,
                   const std::string& flow, const std::string& gradient) {
  return floater_positions(
      start, weights.vec(), length,
      second("floater_positions: flow", flow, "linear", "convolution") ? Flow::kConvolution
                                                                       : Flow::kLinear,
      second("floater_positions: gradient", gradient, "solver", "adjoint") ? FlowGradient::kAdjoint
                                                                           : FlowGradient::kSolver);
}

at::Tensor gru(const at::Tensor& h0, at::TensorList weights, int64_t length) {
  return gru_positions(h0, weights.vec(), length);
}

// r e^{i (w pos + theta)} of each token (Wang et al. 2020): ids and positions [batch, length];
// amplitudes r [tokens, D]; frequencies w [tokens, D], [D] or [tokens, 1]; phases theta [tokens,
// D], zeros in the official code. Real and imaginary parts, [batch, length, D] each.
std::tuple<at::Tensor, at::Tensor> complex_embedding(const at::Tensor& ids,
                                                     const at::Tensor& positions,
                                                     const at::Tensor& r, const at::Tensor& w,
                                                     at::TensorList theta) {
  const at::Tensor rotary_positions = positions.to(r.options()).unsqueeze(-1);
  const at::Tensor angle =
      angles_of_token_ids(ids, rotary_positions, w, theta.empty() ? at::Tensor() : theta[0]);
  const at::Tensor amplitude = of_words(r, ids);
  return {amplitude * angle.cos(), amplitude * angle.sin()};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  library.def(
      "alibi_slopes(int heads, float max_bias=8.0, int train_length=0, int length=0) -> Tensor",
      slopes);
  library.def(
      "sandwich_bias(Tensor distances, int heads, int width=128, int first_index=1, float? "
      "strength=None, float ratio=8.0) -> Tensor",
      sandwich_bias);
  library.def(
      "t5_buckets(Tensor distances, int buckets=32, int max_distance=128, bool bidirectional=True) "
      "-> Tensor",
      t5_buckets);
  library.def(
      "deberta_rows(Tensor distances, int buckets=256, int max_positions=512, bool "
      "microsoft=False) -> Tensor",
      deberta_rows);
  library.def(
      "sinusoid(Tensor positions, int width, str layout='interleaved', float "
      "max_timescale=10000.0, float min_timescale=1.0) -> Tensor",
      sinusoid);
  library.def("clock(Tensor positions, int[] periods) -> Tensor", clock);
  library.def("alien_clock(Tensor positions, float ratio, int hands) -> Tensor", alien_clock);
  library.def("binary(Tensor positions, int bits, bool signs=False) -> Tensor", binary);
  library.def(
      "xpos_growth(int dim, float gamma=0.4, float scale_base=512.0, float? xi=None) -> Tensor",
      xpos_growth);
  library.def(
      "stretched_frequencies(int dim, float base=10000.0, str stretch='null', int length=1, int "
      "train_length=0) -> (Tensor, float, float)",
      stretched_frequencies);
  library.def("config_frequencies(str config, int length=1) -> (Tensor, float, float)",
              config_frequencies);
  library.def(
      "query_factors(Tensor positions, str law, int length=0, float strength=0.0) -> Tensor",
      query_factors_op);
  library.def("rope_frequencies(int dim, float base=10000.0) -> Tensor", rope_frequencies);
  library.def("rope_cos_sin(Tensor positions, int dim, float base=10000.0) -> (Tensor, Tensor)",
              rope_cos_sin);
  library.def(
      "floater_positions(Tensor start, Tensor[] weights, int length, str flow='linear', str "
      "gradient='solver') -> Tensor",
      floater);
  library.def("gru_positions(Tensor h0, Tensor[] weights, int length) -> Tensor", gru);
  library.def("tanh_positions(Tensor start, Tensor weight, Tensor bias, int length) -> Tensor",
              tanh_positions);
  library.def(
      "complex_embedding(Tensor ids, Tensor positions, Tensor r, Tensor w, Tensor[] theta) -> "
      "(Tensor, Tensor)",
      complex_embedding);
}

}  // namespace sextant
