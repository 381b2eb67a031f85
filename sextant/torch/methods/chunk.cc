// chunk: the sequence is cut into chunks and a query sees only its own chunk; wraps another method.
//
// Llama 4's chunked attention (attention_chunk_size 8192, over rope, in three layers of four) with
// the causal mask; without it, independent segments. Query i sees key j if floor((i - origin) /
// chunk) = floor((j - origin) / chunk). Positions count, not rows, so decoding and packed sequences
// agree with prefill. With left padding Hugging Face starts the chunks after the padding: set
// `origin` to that position.
//
// By default the chunk is the training length, and then no relative method meets a distance beyond
// training.
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/method_wrapper.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Chunk final : public MethodWrapper {
 public:
  Chunk(std::unique_ptr<Method> of, int64_t chunk, int64_t origin)
      : MethodWrapper(std::move(of)), chunk_(chunk), origin_(origin) {}

  bool relative() const override { return false; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    MethodWrapper::apply(operands, layout, layer, parameters);
    const at::Tensor own = chunk_ranges(layout, chunk_, origin_);
    for (SweepOperand& sweep : operands.sweeps)
      sweep.key_ranges = intersection(sweep.key_ranges, own);
  }

 private:
  int64_t chunk_, origin_;
};

std::unique_ptr<Method> make_chunk(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("chunk", json);
  constexpr int64_t kFar = int64_t{1} << 52;
  return std::make_unique<Chunk>(
      make_method(options.string("of"), shape, options.object("options")),
      options.integer_or("chunk", shape.train_length, 1, kFar),
      options.integer("origin", -kFar, kFar));
}

}  // namespace

MethodInfo chunk_method() {
  return {.name = "chunk",
          .summary = "A query's own chunk only, over another method (Llama 4)",
          .formula = "visible: floor((i - origin) / chunk) = floor((j - origin) / chunk)",
          .defaults = R"({"chunk": null, "origin": 0, "of": "rope", "options": {}})",
          .make = make_chunk};
}

}  // namespace sextant
