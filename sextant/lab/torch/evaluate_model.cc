// A candidate of a stretch is the folder's model with another method. All are loaded from the same
// weights and scored on the same text.
#include "sextant/lab/torch/evaluate_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/result/block_losses.h"
#include "sextant/lab/result/stretch_candidates.h"
#include "sextant/lab/torch/device.h"
#include "sextant/models/hugging_face/family.h"
#include "sextant/models/hugging_face/tokenizer.h"
#include "sextant/torch/methods/shared/dropped_channels.h"

namespace sextant::lab {
namespace {

using hugging_face::kByteTokens;

constexpr int64_t kEnoughBlocks = 64;

[[noreturn]] void wrong(const char* field, const std::string& expected) {
  fail(std::string("evaluate: ") + field + ": expected " + expected);
}

void check(const EvaluationRequest& request, const ModelConfig& config) {
  if (!predicts_masked_bytes(config.model) && config.model.vocabulary != kByteTokens)
    wrong("vocab_size", fmt::format("{}, bytes as tokens, or {} with masked bytes, but got {}",
                                    kByteTokens, kMaskedVocabulary, config.model.vocabulary));
  if (!predicts_masked_bytes(config.model) && !config.model.causal)
    wrong("causal", fmt::format("true with {} tokens, but got false", kByteTokens));
  const std::vector<int64_t>& lengths = request.lengths;
  if (lengths.empty() || lengths.front() < 1) wrong("lengths", "at least one, of at least 1");
  if (!std::ranges::is_sorted(lengths, std::less_equal<>{}))
    wrong("lengths", "each above the one before");
  if (predicts_masked_bytes(config.model) && lengths.back() < kMaskPasses)
    wrong("lengths",
          fmt::format("a longest one of at least {}, so that each pass hides a byte, but got {}",
                      kMaskPasses, lengths.back()));
  for (const int64_t length : lengths) {
    if (lengths.back() % length != 0)
      wrong("lengths",
            fmt::format(
                "divisors of the longest, {}, so that all are scored on the same bytes, but got {}",
                lengths.back(), length));
  }
  if (!(request.share > 0 && request.share <= 1))
    wrong("share", fmt::format("above 0 and at most 1, but got {}", request.share));
  if (request.blocks != 0 && request.blocks < kFewestBlocks)
    wrong("blocks", fmt::format("at least {}, but got {}", kFewestBlocks, request.blocks));
}

ModelConfig read_by(ModelConfig config, const StretchCandidate& candidate) {
  config.method = candidate.method;
  config.options = candidate.options;
  return config;
}

std::unique_ptr<Method> method_of(const ModelConfig& config) {
  return make_method(config.method, model_shape(config.model, config.train_length),
                     nlohmann::json::parse(config.options));
}

void check_rope(const ModelConfig& config) {
  if (config.method != "rope")
    fail("extend: method: expected rope, which alone is stretched, but the model has " +
         config.method + "; sextant evaluate shows how it reads long texts");
  if (nlohmann::json::parse(config.options).value("train", nlohmann::json(false)) == true)
    fail(
        "extend: options: train: expected false, as no candidate is for frequencies that were "
        "trained, but got true; sextant evaluate shows how it reads long texts");
}

}  // namespace

ModelOnText::ModelOnText(const EvaluationRequest& request)
    : device(device_named(request.device)), saved(read_model(request.model)), corpus() {
  check(request, saved.config);
  drop_channels = request.drop_channels;
  drop_seed = request.drop_seed;
  if (drop_channels != 0) {
    const ModelConfig& config = saved.config;
    const ModelShape shape = model_shape(config.model, config.train_length);
    saved.decoder.replace_method(with_dropped_channels(
        make_method(config.method, shape, nlohmann::json::parse(config.options)), shape,
        drop_channels, request.drop_seed));
  }
  saved.decoder.move_to(device);
  corpus = read_corpus(request.text, request.share);
  const int64_t longest = request.lengths.back(), trained = saved.config.train_length;
  test = {.lengths = request.lengths, .bin = longest};
  test.blocks = request.blocks;
  if (test.blocks == 0)
    test.blocks = std::clamp(count_test_blocks(corpus, longest), kFewestBlocks, kEnoughBlocks);
  blocks = test_blocks(corpus, longest, test.blocks);
  const bool has_trained = std::ranges::find(test.lengths, trained) != test.lengths.end();
  const int64_t shortest = test.lengths.front();
  scoring = {.reference = has_trained ? trained : shortest,
             .stride = request.stride,
             .reading = {.segment = trained, .memory = saved.config.memory},
             .masked = predicts_masked_bytes(saved.config.model)};
  if (scoring.stride == 0) scoring.stride = std::clamp<int64_t>(trained / 2, 1, shortest);
  if (scoring.stride < 1 || scoring.stride > shortest)
    wrong("stride",
          fmt::format("1 to the shortest length, {}, but got {}", shortest, scoring.stride));
}

Evaluation ModelOnText::evaluate(const std::function<void(int64_t)>& on_block) const {
  return lab::evaluate(saved.decoder, blocks, test, scoring, on_block);
}

ModelEvaluation ModelOnText::described(const Evaluation& evaluation) const {
  return {.method = saved.config.method,
          .options = saved.config.options,
          .train_length = saved.config.train_length,
          .memory = saved.config.memory,
          .weights = saved.decoder.weights(),
          .drop_channels = drop_channels,
          .drop_seed = drop_seed,
          .blocks = test.blocks,
          .stride = scoring.stride,
          .masked = scoring.masked,
          .lengths = evaluation.lengths,
          .reference = scoring.reference};
}

ModelEvaluation evaluate_model(const EvaluationRequest& request, const OnBlock& on_block) {
  const ModelOnText model(request);
  return model.described(model.evaluate([&](int64_t done) { on_block(done, model.test.blocks); }));
}

Extension extend_model(const EvaluationRequest& request, const OnBlock& on_block) {
  check_rope(read_model_config(request.model));
  ModelOnText model(request);
  const ModelConfig& config = model.saved.config;
  if (model.scoring.reference != config.train_length)
    fail("extend: lengths: expected the training length among them, " +
         std::to_string(config.train_length));
  const std::vector<StretchCandidate> candidates =
      stretch_candidates(config.options, config.train_length, request.lengths.back());
  const auto total = static_cast<int64_t>(candidates.size()) * model.test.blocks;
  std::vector<Evaluation> evaluations;
  for (const StretchCandidate& candidate : candidates) {
    model.saved.decoder.replace_method(method_of(read_by(config, candidate)));
    const auto before = static_cast<int64_t>(evaluations.size()) * model.test.blocks;
    evaluations.push_back(model.evaluate([&](int64_t done) { on_block(before + done, total); }));
  }
  std::vector<CandidateLosses> losses;
  for (size_t n = 0; n < candidates.size(); ++n) {
    losses.push_back({.candidate = candidates[n], .blocks = evaluations[n].blocks});
    losses.back().candidate.in_hugging_face =
        hugging_face::choose_family(read_by(config, candidates[n])).family !=
        hugging_face::Family::kOwn;
  }
  return extension_of(model.described(evaluations.front()), losses);
}

void write_extended(const std::filesystem::path& model, const StretchCandidate& candidate,
                    const std::filesystem::path& folder) {
  const SavedModel saved = read_model(model);
  check_rope(saved.config);
  write_model(read_by(saved.config, candidate), saved.decoder, folder);
}

}  // namespace sextant::lab
