#include "bench/decode_step/model_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "sextant/models/decoder/decoder.h"

namespace sextant::bench {
namespace {

class ModelStep {
 public:
  ModelStep(const StepSizes& sizes, const std::string& method)
      : rows_(sizes.keys - 1),
        decoder_(
            options(sizes),
            make_method(method, model_shape(options(sizes), sizes.keys), nlohmann::json::object()),
            /*seed=*/1),
        cache_(decoder_.new_cache()),
        sequence_(cache_.add()) {
    decoder_.logits(at::zeros({1, rows_}, at::kLong), cache_, {&sequence_, 1});
  }

  void run() {
    decoder_.logits(token_, cache_, {&sequence_, 1});
    cache_.truncate(sequence_, rows_);
  }

 private:
  static DecoderOptions options(const StepSizes& sizes) {
    const int64_t width = sizes.heads * sizes.head_dim;
    return {.layers = sizes.layers,
            .width = width,
            .heads = sizes.heads,
            .key_heads = sizes.key_heads,
            .mlp_width = 4 * width};
  }

  int64_t rows_;
  Decoder decoder_;
  DecoderCache cache_;
  int64_t sequence_;
  at::Tensor token_ = at::zeros({1, 1}, at::kLong);
};

}  // namespace

std::function<void()> model_step(const StepSizes& sizes, const std::string& method) {
  return [step = std::make_shared<ModelStep>(sizes, method)] { step->run(); };
}

}  // namespace sextant::bench
