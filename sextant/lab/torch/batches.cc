#include "sextant/lab/torch/batches.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

struct Sequence {
  std::vector<int64_t> tokens, targets, order = {};  // [length]
};

// Batches of sequences that sequence_of(step, row) makes.
Batches batches_of(const TrainingOptions& options, const auto& sequence_of) {
  return [&options, sequence_of](int64_t step) {
    const auto empty = [&] { return at::empty({options.batch, options.length}, at::kLong); };
    Batch batch{empty(), empty()};
    for (int64_t row = 0; row < options.batch; ++row) {
      const Sequence one = sequence_of(step, row);
      std::ranges::copy(one.tokens, batch.tokens[row].data_ptr<int64_t>());
      std::ranges::copy(one.targets, batch.targets[row].data_ptr<int64_t>());
      if (one.order.empty()) continue;
      if (!batch.order.defined()) batch.order = empty();
      std::ranges::copy(one.order, batch.order[row].data_ptr<int64_t>());
    }
    return batch;
  };
}

// Batches of sequences that sequence_of(text, n) makes of windows of the corpus.
Batches batches_of_windows(const TrainingOptions& options, const Corpus& corpus, uint64_t seed,
                           const auto& sequence_of) {
  return batches_of(options, [&options, &corpus, seed, sequence_of](int64_t step, int64_t row) {
    // A window has one byte more than a sequence, the target of the last byte of a causal model.
    const std::string_view text =
        train_window(corpus, options.length, seed, options.batch, step, row);
    return sequence_of(text.substr(0, static_cast<size_t>(options.length)),
                       static_cast<uint64_t>(step * options.batch + row));
  });
}

}  // namespace

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
    for (int64_t row = 0; row < options.batch; ++row)
      text[row].copy_(tokens_of(read(corpus, options.length, seed, options.batch, step, row)));
    return Batch{text.narrow(1, 0, options.length), text.narrow(1, 1, options.length)};
  };
}

Batches masked_batches(const TrainingOptions& options, const Corpus& corpus, uint64_t seed) {
  return batches_of_windows(options, corpus, seed, [seed](std::string_view text, uint64_t n) {
    const MaskedText masked = masked_training_text(text, seed, n);
    return Sequence{masked.tokens, masked.answers};
  });
}

Batches permuted_batches(const TrainingOptions& options, const Corpus& corpus, uint64_t seed) {
  return batches_of_windows(options, corpus, seed, [seed](std::string_view text, uint64_t n) {
    const PermutedText permuted = permuted_training_text(text, seed, n);
    return Sequence{permuted.tokens, permuted.answers, permuted.order};
  });
}

Batches small_batches(Task task, const TrainingOptions& options, uint64_t seed) {
  return batches_of(options, [&options, task, seed](int64_t step, int64_t row) {
    const auto n = static_cast<uint64_t>(step * options.batch + row);
    if (task == Task::kDirection) {
      const DirectionText text = direction_training_text(options.length, seed, n);
      return Sequence{text.tokens, text.tags};
    }
    const PairText text = pair_training_text(options.length, seed, n);
    return Sequence{text.tokens, text.answers};
  });
}

}  // namespace sextant::lab
