#include "sextant/lab/retrieve.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "sextant/lab/pair_task.h"

namespace sextant::lab {
namespace {

constexpr uint64_t kSeed = 0;  // of the texts: those of trainings come from another stream
constexpr int64_t kTokensAtOnce = 1 << 12;  // their stream and hidden layer stay in the caches

// How many of the texts first ... first + count - 1 are answered right: the likeliest of the answers.
int64_t right_of(const Decoder& decoder, const AtDistance& at, int64_t first, int64_t count) {
  const at::Tensor tokens = at::empty({count, at.length}, at::kLong);
  const at::Tensor answers = at::empty({count}, at::kLong);
  for (int64_t n = 0; n < count; ++n) {
    const PairText text =
        pair_test_text(at.length, at.distance, kSeed, static_cast<uint64_t>(first + n));
    std::ranges::copy(text.tokens, tokens[n].data_ptr<int64_t>());
    answers.data_ptr<int64_t>()[n] = text.answers.back() - kFirstAnswer;
  }
  const at::Tensor logits = decoder.last_logits(tokens).narrow(1, kFirstAnswer, kPairValues);
  return logits.argmax(1).eq(answers).sum().item<int64_t>();
}

Mean share_of(int64_t right, int64_t texts) {
  const auto count = static_cast<double>(texts);
  const double guarded = (static_cast<double>(right) + 2) / (count + 4);
  return {.value = static_cast<double>(right) / count,
          .error = std::sqrt(guarded * (1 - guarded) / (count + 4))};
}

}  // namespace

std::vector<AtDistance> retrieve(const Decoder& decoder, const RetrievalOptions& options,
                                 const std::function<void(int64_t, int64_t)>& on_distance) {
  const at::NoGradGuard no_gradients;
  std::vector<AtDistance> all;
  for (const int64_t length : options.lengths) {
    for (const int64_t distance : distances_in(length, options)) {
      all.push_back({.length = length, .distance = distance, .accuracy = {}});
    }
  }
  int64_t done = 0;
  for (AtDistance& at : all) {
    const int64_t at_once = std::max<int64_t>(1, kTokensAtOnce / at.length);
    int64_t right = 0;
    for (int64_t first = 0; first < options.texts; first += at_once) {
      right += right_of(decoder, at, first, std::min(at_once, options.texts - first));
    }
    at.accuracy = share_of(right, options.texts);
    on_distance(++done, static_cast<int64_t>(all.size()));
  }
  return all;
}

}  // namespace sextant::lab
