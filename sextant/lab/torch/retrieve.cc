#include "sextant/lab/torch/retrieve.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

constexpr uint64_t kSeed = 0;               // test sequences; training uses another random stream
constexpr int64_t kTokensAtOnce = 1 << 12;  // residual stream and hidden layer fit in the caches

// Answers of sequences first ... first + count - 1: '1' where the likeliest answer token is right,
// else '0'.
std::string right_of(const Decoder& decoder, const AtDistance& at, int64_t first, int64_t count) {
  const at::Tensor tokens = at::empty({count, at.length}, at::kLong);
  std::vector<int64_t> answers;
  for (int64_t n = 0; n < count; ++n) {
    const PairText text =
        pair_test_text(at.length, at.distance, kSeed, static_cast<uint64_t>(first + n));
    std::ranges::copy(text.tokens, tokens[n].data_ptr<int64_t>());
    answers.push_back(text.answers.back() - kFirstAnswer);
  }
  const at::Tensor given =
      decoder.last_logits(tokens).narrow(1, kFirstAnswer, kPairValues).argmax(1);
  std::string right;
  for (size_t n = 0; n < answers.size(); ++n) {
    right += given.data_ptr<int64_t>()[n] == answers[n] ? '1' : '0';
  }
  return right;
}

Mean share_of(const std::string& right) {
  const auto count = static_cast<double>(right.size());
  const auto ones = static_cast<double>(std::ranges::count(right, '1'));
  const double guarded = (ones + 2) / (count + 4);
  return {.value = ones / count, .error = std::sqrt(guarded * (1 - guarded) / (count + 4))};
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
    for (int64_t first = 0; first < options.texts; first += at_once) {
      at.right += right_of(decoder, at, first, std::min(at_once, options.texts - first));
    }
    at.accuracy = share_of(at.right);
    on_distance(++done, static_cast<int64_t>(all.size()));
  }
  return all;
}

}  // namespace sextant::lab
