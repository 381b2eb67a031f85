#include "sextant/lab/torch/batches.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {

at::Tensor tokens_of(std::string_view text) {
  at::Tensor tokens = at::empty({static_cast<int64_t>(text.size())}, at::kLong);
  std::ranges::transform(text, tokens.data_ptr<int64_t>(),
                         [](char byte) { return static_cast<uint8_t>(byte); });
  return tokens;
}

Batches text_batches(const TrainingOptions& options, const Corpus& corpus, uint64_t seed,
                     bool continues) {
  return [&options, &corpus, seed, read = continues ? train_segment : train_window](int64_t step) {
    const at::Tensor text = at::empty({options.batch, options.length + 1}, at::kLong);
    for (int64_t row = 0; row < options.batch; ++row) {
      text[row].copy_(tokens_of(read(corpus, options.length, seed, options.batch, step, row)));
    }
    return Batch{text.narrow(1, 0, options.length), text.narrow(1, 1, options.length)};
  };
}

Batches pair_batches(const TrainingOptions& options, uint64_t seed) {
  return [&options, seed](int64_t step) {
    Batch batch{at::empty({options.batch, options.length}, at::kLong),
                at::empty({options.batch, options.length}, at::kLong)};
    for (int64_t row = 0; row < options.batch; ++row) {
      const PairText text = pair_training_text(options.length, seed,
                                               static_cast<uint64_t>(step * options.batch + row));
      std::ranges::copy(text.tokens, batch.tokens[row].data_ptr<int64_t>());
      std::ranges::copy(text.answers, batch.targets[row].data_ptr<int64_t>());
    }
    return batch;
  };
}

}  // namespace sextant::lab
