#include "sextant/lab/torch/accuracy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sextant/lab/data/direction_task.h"
#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

constexpr uint64_t kSeed = 0;               // test sequences; training uses another random stream
constexpr int64_t kTokensAtOnce = 1 << 12;  // residual stream and hidden layer fit in the caches

struct Question {
  std::vector<int64_t> tokens;
  int64_t position = 0;  // of the token that is predicted
  int64_t answer = 0;    // counted from the first possible one
};

// The possible answers of a task: tokens first ... first + count - 1.
struct Answers {
  int64_t first = 0, count = 0;
};

Answers answers_of(Task task) {
  if (task == Task::kDirection) return {.first = 0, .count = kCues};
  return {.first = kFirstAnswer, .count = kPairValues};
}

Question question_of(Task task, const AtDistance& at, uint64_t n) {
  if (task == Task::kDirection) {
    const DirectionText text = direction_test_text(at.length, at.distance, n);
    return {text.tokens, text.asked, text.tags[static_cast<size_t>(text.asked)]};
  }
  const PairText text = pair_test_text(at.length, at.distance, kSeed, n);
  return {text.tokens, at.length - 1, text.answers.back() - kFirstAnswer};
}

// Answers to sequences first ... first + count - 1: '1' where the likeliest answer is right, else
// '0'.
std::string right_of(const Decoder& decoder, Task task, const AtDistance& at, int64_t first,
                     int64_t count) {
  const at::Tensor tokens = at::empty({count, at.length}, at::kLong);
  const at::Tensor positions = at::empty({count}, at::kLong);
  std::vector<int64_t> expected;
  for (int64_t n = 0; n < count; ++n) {
    const Question question = question_of(task, at, static_cast<uint64_t>(first + n));
    std::ranges::copy(question.tokens, tokens[n].data_ptr<int64_t>());
    positions.data_ptr<int64_t>()[n] = question.position;
    expected.push_back(question.answer);
  }
  const Answers answers = answers_of(task);
  const at::Tensor logits =
      task == Task::kPairs ? decoder.last_logits(tokens) : decoder.logits_at(tokens, positions);
  const at::Tensor given = logits.narrow(1, answers.first, answers.count).argmax(1).cpu();
  std::string right;
  for (size_t n = 0; n < expected.size(); ++n) {
    right += given.data_ptr<int64_t>()[n] == expected[n] ? '1' : '0';
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

std::vector<AtDistance> accuracies(const Decoder& decoder, Task task,
                                   const RetrievalOptions& options,
                                   const std::function<void(int64_t, int64_t)>& on_distance) {
  const at::NoGradGuard no_gradients;
  std::vector<AtDistance> all;
  for (const int64_t length : options.lengths) {
    for (const int64_t distance : asked_distances(task, length, options)) {
      all.push_back({.length = length, .distance = distance, .accuracy = {}});
    }
  }
  int64_t done = 0;
  for (AtDistance& at : all) {
    const int64_t at_once = std::max<int64_t>(1, kTokensAtOnce / at.length);
    for (int64_t first = 0; first < options.texts; first += at_once) {
      at.right += right_of(decoder, task, at, first, std::min(at_once, options.texts - first));
    }
    at.accuracy = share_of(at.right);
    on_distance(++done, static_cast<int64_t>(all.size()));
  }
  return all;
}

}  // namespace sextant::lab
