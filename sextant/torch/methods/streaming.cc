// streaming: the first and the latest keys, with positions counted in a cache of only these keys.
//
// Xiao et al. 2023 (StreamingLLM, arXiv 2309.17453; github.com/mit-han-lab/streaming-llm): a query
// sees the first `sinks` keys of its sequence, the `recent` keys before it, and itself. Keys are
// rotated by their index in that cache and the query by the cache's length, so that the distance to
// a sink never exceeds sinks + recent. With i and j counted from the sequence's first key, the
// distance is
//
//   i - j                          for |i - j| <= recent
//   min(i, sinks + recent) - j     for j < sinks and farther away
//
// With the defaults, 4 sinks and recent keys up to the training length, no distance is beyond
// training. Keys in between are not read. A cache that drops them needs no other method: its keys
// at consecutive positions, with the query after them, give the same result. Without the causal
// mask as many keys are visible to the right.
#include <ATen/TensorOperators.h>
#include <ATen/ops/minimum.h>

#include <algorithm>
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/rotary_plan.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Streaming final : public Method {
 public:
  Streaming(const Spectrum& spectrum, int64_t sinks, int64_t recent)
      : rotation_(rotation(spectrum)), sinks_(sinks), recent_(recent) {}

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    const at::Tensor key_ranges = operands.sweeps.at(0).key_ranges;
    const at::Tensor near = near_ranges(layout, recent_, recent_);
    const at::Tensor first = before(first_ranges(layout, sinks_), near);
    const at::Tensor query = query_rotary_positions(layout, 1),
                     key = key_rotary_positions(layout, 1);
    operands.sweeps = {
        {.key_ranges = intersection(key_ranges, near),
         .rotation = rotation_,
         .query_rotary_positions = query,
         .key_rotary_positions = key},
        {.key_ranges = intersection(key_ranges, first),
         .rotation = rotation_,
         .query_rotary_positions = at::minimum(query, sequence_starts(layout) + (sinks_ + recent_)),
         .key_rotary_positions = key}};
  }

 private:
  Rotation rotation_;
  int64_t sinks_, recent_;
};

std::unique_ptr<Method> make_streaming(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("streaming", json);
  constexpr int64_t kFar = int64_t{1} << 51;
  const int64_t sinks = options.integer("sinks", 0, kFar);
  const int64_t room = std::max<int64_t>(shape.train_length - 1 - sinks, 0);
  const int64_t recent =
      shape.train_length > 0 ? room : -1;  // -1: refused, as train_length is unknown
  return std::make_unique<Streaming>(one_axis_spectrum(options, shape), sinks,
                                     options.integer_or("recent", recent, 0, kFar));
}

}  // namespace

MethodInfo streaming_method() {
  return {.name = "streaming",
          .summary = "The first keys and the latest, counted in the cache (Xiao et al. 2023)",
          .formula =
              "query i sees j < sinks, and i - recent <= j <= i; relative position: i - j if i - j "
              "<= recent; min(i, sinks + recent) - j for the sinks, further away",
          .defaults = one_axis_defaults() + R"(, "sinks": 4, "recent": null})",
          .make = make_streaming,
          .tests = {.rounding = 1e-14}};
}

}  // namespace sextant
