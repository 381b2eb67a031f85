// Text is scored block by block at each length; answers of the small task and bytes that a pass
// hides are scored by the same passes.
#include "sextant/lab/torch/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/data/retrieval_task.h"
#include "sextant/lab/torch/batches.h"

namespace sextant::lab {
namespace {

double mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The scores of one block at one length.
struct BlockScores {
  std::vector<float> losses;  // of the bytes that are scored when the block is cut into pieces
  std::vector<int64_t> positions = {};  // in the block, of each of these
  double sliding = 0;
};

// Losses of tokens and targets [pieces, length].
at::Tensor losses_of(const Decoder& decoder, const at::Tensor& tokens, const at::Tensor& targets,
                     const Reading& reading) {
  Memory memory{.limit = reading.memory};
  if (reading.memory == 0) return decoder.losses(tokens, targets, memory);
  std::vector<at::Tensor> segments;
  for (int64_t first = 0; first < tokens.size(1); first += reading.segment) {
    const int64_t count = std::min(reading.segment, tokens.size(1) - first);
    segments.push_back(
        decoder.losses(tokens.narrow(1, first, count), targets.narrow(1, first, count), memory)
            .view({tokens.size(0), count}));
  }
  return at::cat(segments, 1);
}

constexpr uint64_t kTestSeed = 0;           // test sequences; training uses another random stream
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
  const PairText text = pair_test_text(at.length, at.distance, kTestSeed, n);
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
  for (size_t n = 0; n < expected.size(); ++n)
    right += given.data_ptr<int64_t>()[n] == expected[n] ? '1' : '0';
  return right;
}

Mean share_of(const std::string& right) {
  const auto count = static_cast<double>(right.size());
  const auto ones = static_cast<double>(std::ranges::count(right, '1'));
  const double guarded = (ones + 2) / (count + 4);
  return {.value = ones / count, .error = std::sqrt(guarded * (1 - guarded) / (count + 4))};
}

}  // namespace

std::vector<float> losses(const Decoder& decoder, std::string_view block, int64_t length,
                          const Reading& reading) {
  const at::NoGradGuard no_gradients;
  const auto count = static_cast<int64_t>(block.size()) - 1;
  const at::Tensor text = tokens_of(block);
  const auto pieces = [&](int64_t first) {
    return text.narrow(0, first, count).view({count / length, length});
  };
  const at::Tensor loss = losses_of(decoder, pieces(0), pieces(1), reading).cpu().contiguous();
  const float* data = loss.data_ptr<float>();
  return {data, data + count};
}

namespace {

BlockScores causal_scores(const Decoder& decoder, std::string_view block, int64_t length,
                          const Scoring& scoring) {
  BlockScores scores{.losses = losses(decoder, block, length, scoring.reading)};
  scores.positions.resize(scores.losses.size());
  std::iota(scores.positions.begin(), scores.positions.end(), 0);
  scores.sliding = mean_of(std::span(scores.losses).last(static_cast<size_t>(scoring.stride)));
  return scores;
}

// The losses of the bytes that a pass hides in each row of `text`, [rows, length], where `asked`,
// bool of the same shape, is true.
std::vector<float> losses_of_hidden(const Decoder& decoder, const at::Tensor& text,
                                    const at::Tensor& hidden, const at::Tensor& asked) {
  const at::Tensor targets = text.masked_fill(asked.logical_not(), kNotAsked);
  Memory none;
  // With two streams the visible bytes have the lower rank.
  const at::Tensor loss =
      (decoder.options().query_token >= 0
           ? decoder.permuted_losses(text, targets, hidden.to(at::kLong))
           : decoder.losses(text.masked_fill(hidden, kMaskToken), targets, none))
          .cpu()
          .contiguous();
  return {loss.data_ptr<float>(), loss.data_ptr<float>() + loss.numel()};
}

// `n`: the block's number, which its passes are drawn from.
BlockScores masked_scores(const Decoder& decoder, std::string_view block, size_t n, int64_t length,
                          const Scoring& scoring) {
  const at::NoGradGuard no_gradients;
  const auto count = static_cast<int64_t>(block.size()) - 1;
  const at::Tensor text = tokens_of(block).narrow(0, 0, count);
  const std::vector<int64_t> drawn = passes_of_block(count, n);
  const at::Tensor passes = at::empty({count}, at::kLong);
  std::ranges::copy(drawn, passes.data_ptr<int64_t>());

  const int64_t pass = static_cast<int64_t>(n) % kMaskPasses;
  const at::Tensor hidden = passes.eq(pass).view({count / length, length});
  BlockScores scores{
      .losses = losses_of_hidden(decoder, text.view({count / length, length}), hidden, hidden)};
  for (int64_t place = 0; place < count; ++place)
    if (drawn[static_cast<size_t>(place)] == pass) scores.positions.push_back(place);

  const auto middle = [&](int64_t size) { return (count - size) / 2; };
  const int64_t first = middle(length);
  const at::Tensor window = text.narrow(0, first, length).expand({kMaskPasses, length});
  const at::Tensor of_rows = at::arange(kMaskPasses, at::kLong).unsqueeze(1);
  const at::Tensor hidden_of_rows = passes.narrow(0, first, length).unsqueeze(0).eq(of_rows);
  const at::Tensor inside = at::zeros({length}, at::kBool);
  inside.narrow(0, middle(scoring.stride) - first, scoring.stride).fill_(true);
  scores.sliding = mean_of(
      losses_of_hidden(decoder, window, hidden_of_rows, hidden_of_rows.logical_and(inside)));
  return scores;
}

}  // namespace

bool predicts_masked_bytes(const DecoderOptions& model) {
  return model.vocabulary == kMaskedVocabulary && model.padding == kPaddingToken;
}

Scoring survey_scoring(int64_t train_length, int64_t memory, bool masked) {
  return {.reference = train_length,
          .stride = train_length / 2,
          .reading = {.segment = train_length, .memory = memory},
          .masked = masked};
}

Evaluation evaluate(const Decoder& decoder, std::span<const std::string_view> blocks,
                    const TestOptions& options, const Scoring& scoring,
                    const std::function<void(int64_t)>& on_block) {
  std::vector<BlockLosses> at_length(options.lengths.size());
  const auto bins = static_cast<size_t>(options.longest() / options.bin);
  std::vector<double> sums(bins, 0), counts(bins, 0);
  for (size_t block = 0; block < blocks.size(); ++block) {
    for (size_t n = 0; n < options.lengths.size(); ++n) {
      const BlockScores scores =
          scoring.masked ? masked_scores(decoder, blocks[block], block, options.lengths[n], scoring)
                         : causal_scores(decoder, blocks[block], options.lengths[n], scoring);
      at_length[n].loss.push_back(mean_of(scores.losses));
      at_length[n].sliding.push_back(scores.sliding);
      if (options.lengths[n] != options.longest()) continue;
      for (size_t at = 0; at < scores.losses.size(); ++at) {
        const auto bin = static_cast<size_t>(scores.positions[at] / options.bin);
        sums[bin] += static_cast<double>(scores.losses[at]);
        ++counts[bin];
      }
    }
    on_block(static_cast<int64_t>(block) + 1);
  }
  std::vector<double> loss_at;
  for (size_t bin = 0; bin < bins; ++bin) loss_at.push_back(sums[bin] / counts[bin]);

  const auto trained = static_cast<size_t>(std::ranges::find(options.lengths, scoring.reference) -
                                           options.lengths.begin());
  return {.lengths = at_lengths(options.lengths, at_length, trained),
          .loss_at = loss_at,
          .blocks = at_length};
}

std::vector<AtDistance> accuracies(const Decoder& decoder, Task task,
                                   const RetrievalOptions& options,
                                   const std::function<void(int64_t, int64_t)>& on_distance) {
  const at::NoGradGuard no_gradients;
  std::vector<AtDistance> all;
  for (const int64_t length : options.lengths) {
    for (const int64_t distance : asked_distances(task, length, options))
      all.push_back({.length = length, .distance = distance});
  }
  int64_t done = 0;
  for (AtDistance& at : all) {
    const int64_t at_once = std::max<int64_t>(1, kTokensAtOnce / at.length);
    for (int64_t first = 0; first < options.texts; first += at_once)
      at.right += right_of(decoder, task, at, first, std::min(at_once, options.texts - first));
    at.accuracy = share_of(at.right);
    on_distance(++done, static_cast<int64_t>(all.size()));
  }
  return all;
}

}  // namespace sextant::lab
