// alibi: a linear penalty on distance with one slope per head.
//
// Press, Smith and Lewis 2021 (arXiv 2108.12409): s_ij = q_i.k_j / sqrt(d) - m_h (i - j), where for
// n = 2^a heads m_h = 2^(-max_bias (h + 1) / n), h = 0 .. n - 1, max_bias = 8; for other n see
// alibi_slopes().
//
// The paper is causal. Keys in the future get -m_h future_scale (j - i); future_scale = 1 is
// symmetric, as in MPT, FlashAttention and other bidirectional models. `train` makes the slopes
// parameters: "one" a slope per head, "two" one for the past and one for the future.
//
// flavour "falcon" adds the bias before the product is scaled: slopes / sqrt(d). "bloom" counts a
// key's position by the visible keys of the mask: left padding changes nothing, holes are closed.
//
// interpolation (Al-Khateeb et al. 2023, arXiv 2310.13017) multiplies slopes by train_length /
// length. "static" takes the length from the option `length`. "dynamic" takes it from the last key,
// and all sequences that are packed or cached together must have the same length; decoding then has
// other slopes than prefill.
//
// The bias is computed from integer distances in double precision and rounded once. The official
// code adds m_h j instead: equal after softmax, but in bfloat16 neighbouring keys share one bias
// from position 257 on.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/position/slopes.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

enum class Train { kNothing, kOne, kTwo };
enum class AlibiFlavour { kPaper, kFalcon, kBloom };
enum class Interpolation { kNone, kStatic, kDynamic };

struct AlibiOptions {
  std::vector<double> slopes;
  double future_scale = 1;
  Train train = Train::kNothing;
  AlibiFlavour flavour = AlibiFlavour::kPaper;
  Interpolation interpolation = Interpolation::kNone;
  int64_t train_length = 0, length = 0;
};

// Distances to keys in the past and in the future, [1, diagonals] each, on the device of `like`; 0
// for keys on the other side.
struct Distances {
  at::Tensor past, future;
};

Distances distances(const Diagonals& diagonals, const at::Tensor& like) {
  const at::Tensor past = at::empty({1, diagonals.count}, at::kDouble);
  const at::Tensor future = at::empty({1, diagonals.count}, at::kDouble);
  for (int64_t n = 0; n < diagonals.count; ++n) {
    const int64_t distance = diagonals.distance(n);
    past.data_ptr<double>()[n] = static_cast<double>(std::max<int64_t>(distance, 0));
    future.data_ptr<double>()[n] = static_cast<double>(std::max<int64_t>(-distance, 0));
  }
  return {on_device_of(like, past), on_device_of(like, future)};
}

int64_t last_length(const Layout& layout) {
  std::vector<int64_t> lengths;
  for (const Frame& sequence : sequences(layout))
    lengths.push_back(std::max<int64_t>(sequence.key_position + sequence.keys, 1));
  if (std::ranges::adjacent_find(lengths, std::ranges::not_equal_to()) != lengths.end())
    fail("alibi: interpolation: expected sequences of one length, as slopes are those of all");
  return lengths.empty() ? 1 : lengths[0];
}

// The key_bias of flavour bloom: slope times the index of a key among the visible keys of the mask.
at::Tensor shown_key_bias(const at::Tensor& mask, const at::Tensor& slopes) {
  if (!mask.defined()) fail("alibi: flavour bloom: expected a mask, but got none");
  if (mask.size(1) != 1 || mask.size(2) != 1)
    fail(
        "alibi: flavour bloom: expected a mask [batch, 1, 1, keys] that hides keys from every "
        "query, but got " +
        std::to_string(mask.size(1)) + " heads and " + std::to_string(mask.size(2)) + " queries");
  return slopes.view({1, -1, 1}) * at::cumsum(mask.select(2, 0), 2, at::kDouble);
}

class Alibi final : public Method {
 public:
  explicit Alibi(AlibiOptions options) : options_(std::move(options)) {}

  std::vector<ParameterSpec> parameters() const override {
    const auto heads = static_cast<int64_t>(options_.slopes.size());
    const at::Tensor start = tensor_of(options_.slopes, {heads});
    if (options_.train == Train::kNothing) return {};
    if (options_.train == Train::kOne)
      return {{.name = "slopes", .sizes = {heads}, .initial = start}};
    return {{.name = "slopes_left", .sizes = {heads}, .initial = start},
            {.name = "slopes_right", .sizes = {heads}, .initial = options_.future_scale * start}};
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    double scale = options_.flavour == AlibiFlavour::kFalcon ? operands.scale : 1;
    if (options_.interpolation != Interpolation::kNone)
      scale *= interpolated_slope(
          options_.train_length,
          options_.interpolation == Interpolation::kStatic ? options_.length : last_length(layout));
    const at::Tensor slopes = scale * given(parameters, operands.q);
    if (options_.flavour == AlibiFlavour::kBloom) {
      if (!layout.causal) fail("alibi: flavour bloom: expected causal attention");
      operands.key_bias = shown_key_bias(operands.mask, slopes);
      return;
    }
    const at::Tensor future = options_.train == Train::kTwo ? scale * parameters[1].to(at::kDouble)
                                                            : options_.future_scale * slopes;
    const Distances apart = distances(layout.diagonals(), operands.q);
    operands.bias.rows = -(slopes.unsqueeze(1) * apart.past + future.unsqueeze(1) * apart.future)
                              .to(operands.q.options());
  }

 private:
  at::Tensor given(Parameters parameters, const at::Tensor& like) const {
    if (options_.train != Train::kNothing) return parameters[0].to(at::kDouble);
    return tensor_of(options_.slopes, {static_cast<int64_t>(options_.slopes.size())}, like);
  }

  AlibiOptions options_;
};

std::unique_ptr<Method> make_alibi(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("alibi", json);
  AlibiOptions alibi = {
      .slopes = alibi_slopes(shape.heads, options.number("max_bias", 1e-6, 1e6)),
      .future_scale = options.number("future_scale", 0, 1e6),
      .train = static_cast<Train>(options.choice("train", {"none", "one", "two"})),
      .flavour = static_cast<AlibiFlavour>(options.choice("flavour", {"paper", "falcon", "bloom"})),
      .interpolation = static_cast<Interpolation>(
          options.choice("interpolation", {"none", "static", "dynamic"})),
      .train_length = shape.train_length};
  constexpr int64_t kMost = int64_t{1} << 52;
  alibi.length = options.integer_or("length", alibi.train_length, 0, kMost);
  if (alibi.interpolation != Interpolation::kNone) {
    if (alibi.train_length < 1) options.refuse("interpolation", "none, as train_length is 0");
    if (alibi.length < 1) options.refuse("length", "at least 1");
  }
  return std::make_unique<Alibi>(std::move(alibi));
}

}  // namespace

MethodInfo alibi_method() {
  return {.name = "alibi",
          .summary = "Attention with linear biases (Press et al. 2021)",
          .formula = "s_ij = q_i . k_j / sqrt(d) - m_h (i - j); m_h = 2^(-max_bias (h + 1) / n)",
          .defaults = R"({"max_bias": 8.0, "future_scale": 1.0, "train": "none",
                          "flavour": "paper", "interpolation": "none", "length": null})",
          .make = make_alibi};
}

}  // namespace sextant
