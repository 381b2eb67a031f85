// window: each query sees only the nearest keys; wraps another method.
//
// Local attention: Beltagy et al. 2020 (Longformer, arXiv 2004.05150); Mistral, Gemma and gpt-oss
// have a sliding window over rope, which is the default. A query sees the `window` keys at
// distances 0 .. window - 1, itself among them (as Hugging Face, gpt-oss and llama.cpp count).
//
// Without the causal mask it sees as far to its right. Popular codes differ by one there:
// "exclusive", |d| < window, is Gemma 3; "inclusive", |d| <= window, is Hugging Face's
// bidirectional mask (ModernBERT, local_attention 128, has window 64). `left` and `right` give the
// range directly, as FlashAttention's window_size does: keys at distances -right .. left; -1 is no
// limit.
//
// The first `sinks` keys stay visible to all queries (Xiao et al. 2023, StreamingLLM, arXiv
// 2309.17453, without its positions within the cache).
//
// By default the window is the training length, and a model then never meets a distance beyond
// training: no relative method fails, and nothing beyond the window is read.
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/method_wrapper.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

constexpr int64_t kFar = int64_t{1} << 52;

struct Reach {
  int64_t left = 0, right = 0;
};

class Window final : public MethodWrapper {
 public:
  Window(std::unique_ptr<Method> of, Reach causal, Reach bidirectional, int64_t sinks)
      : MethodWrapper(std::move(of)),
        causal_(causal),
        bidirectional_(bidirectional),
        sinks_(sinks) {}

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    MethodWrapper::apply(operands, layout, layer, parameters);
    const Reach& reach = layout.causal ? causal_ : bidirectional_;
    const at::Tensor near = near_ranges(layout, reach.left, reach.right);
    const std::vector<SweepOperand> whole = operands.sweeps;
    for (SweepOperand& sweep : operands.sweeps)
      sweep.key_ranges = intersection(sweep.key_ranges, near);
    if (sinks_ == 0) return;
    const at::Tensor first = before(first_ranges(layout, sinks_), near);
    for (SweepOperand sweep : whole) {
      sweep.key_ranges = intersection(sweep.key_ranges, first);
      operands.sweeps.push_back(std::move(sweep));
    }
  }

 private:
  Reach causal_, bidirectional_;
  int64_t sinks_;
};

std::unique_ptr<Method> make_window(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("window", json);
  const int64_t window = options.integer_or("window", shape.train_length, 1, kFar);
  const bool inclusive = options.choice("bidirectional", {"exclusive", "inclusive"}) == 1;
  const auto reach = [&](int64_t otherwise) {
    const int64_t left = options.integer_or("left", otherwise, -1, kFar);
    const int64_t right = options.integer_or("right", otherwise, -1, kFar);
    return Reach{left < 0 ? kFar : left, right < 0 ? kFar : right};
  };
  return std::make_unique<Window>(
      make_method(options.string("of"), shape, options.object("options")), reach(window - 1),
      reach(inclusive ? window : window - 1), options.integer("sinks", 0, kFar));
}

}  // namespace

MethodInfo window_method() {
  return {.name = "window",
          .summary = "The nearest keys only, over another method (Longformer 2020, Mistral)",
          .formula = "visible: 0 <= i - j < window",
          .defaults = R"({"window": null, "bidirectional": "exclusive", "left": null, "right": null,
                          "sinks": 0, "of": "rope", "options": {}})",
          .make = make_window,
          .tests = {.options = R"({"window": 4})", .rounding = 1e-14}};
}

}  // namespace sextant
