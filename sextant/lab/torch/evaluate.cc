#include "sextant/lab/torch/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>

#include "sextant/lab/torch/batches.h"

namespace sextant::lab {
namespace {

double mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Mean over blocks and its standard error. Blocks are far enough apart to be independent.
Mean mean_of_blocks(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Mean mean;
  for (const double value : values) mean.value += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  mean.error = std::sqrt(squares / (count - 1) / count);
  return mean;
}

// Rounds to 1e-6 to keep result files short; another seed changes a loss by at least 0.001.
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = std::round(value * 1e6) / 1e6;
  return values;
}

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

}  // namespace

std::vector<float> losses(const Decoder& decoder, std::string_view block, int64_t length,
                          const Reading& reading) {
  const at::NoGradGuard no_gradients;
  const auto count = static_cast<int64_t>(block.size()) - 1;
  const at::Tensor text = tokens_of(block);
  const auto pieces = [&](int64_t first) {
    return text.narrow(0, first, count).view({count / length, length});
  };
  const at::Tensor loss = losses_of(decoder, pieces(0), pieces(1), reading).contiguous();
  const float* data = loss.data_ptr<float>();
  return {data, data + count};
}

Mean mean_difference(std::span<const double> values, std::span<const double> reference) {
  std::vector<double> differences;
  for (size_t n = 0; n < values.size(); ++n) differences.push_back(values[n] - reference[n]);
  return mean_of_blocks(differences);
}

Evaluation evaluate(const Decoder& decoder, std::span<const std::string_view> blocks,
                    const TestOptions& options, int64_t train_length, int64_t memory,
                    const std::function<void(int64_t)>& on_block) {
  return evaluate(decoder, blocks, options,
                  {.reference = train_length,
                   .stride = train_length / 2,
                   .reading = {.segment = train_length, .memory = memory}},
                  on_block);
}

Evaluation evaluate(const Decoder& decoder, std::span<const std::string_view> blocks,
                    const TestOptions& options, const Scoring& scoring,
                    const std::function<void(int64_t)>& on_block) {
  const auto bins = static_cast<size_t>(options.longest() / options.bin);
  const auto bin = static_cast<size_t>(options.bin);
  const auto tail = static_cast<size_t>(scoring.stride);
  std::vector<BlockLosses> at_length(options.lengths.size());
  std::vector<double> loss_at(bins, 0);
  for (size_t block = 0; block < blocks.size(); ++block) {
    for (size_t n = 0; n < options.lengths.size(); ++n) {
      const std::vector<float> all =
          losses(decoder, blocks[block], options.lengths[n], scoring.reading);
      at_length[n].loss.push_back(mean_of(all));
      at_length[n].sliding.push_back(mean_of(std::span(all).last(tail)));
      if (options.lengths[n] != options.longest()) continue;
      for (size_t b = 0; b < bins; ++b) {
        loss_at[b] +=
            mean_of(std::span(all).subspan(b * bin, bin)) / static_cast<double>(blocks.size());
      }
    }
    on_block(static_cast<int64_t>(block) + 1);
  }

  const auto trained = static_cast<size_t>(std::ranges::find(options.lengths, scoring.reference) -
                                           options.lengths.begin());
  Evaluation evaluation{.lengths = {}, .loss_at = loss_at, .blocks = at_length};
  for (size_t n = 0; n < options.lengths.size(); ++n) {
    const BlockLosses& here = at_length[n];
    const BlockLosses& reference = at_length.at(trained);
    evaluation.lengths.push_back(
        {.length = options.lengths[n],
         .loss = mean_of_blocks(here.loss),
         .sliding = mean_of_blocks(here.sliding),
         .loss_change = mean_difference(here.loss, reference.loss),
         .sliding_change = mean_difference(here.sliding, reference.sliding),
         .sliding_blocks = rounded(here.sliding)});
  }
  return evaluation;
}

}  // namespace sextant::lab
