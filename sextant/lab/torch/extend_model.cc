#include "sextant/lab/torch/extend_model.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/lab/result/extension.h"
#include "sextant/lab/result/stretch_candidates.h"
#include "sextant/lab/torch/evaluate_model.h"
#include "sextant/models/hugging_face/family.h"

namespace sextant::lab {
namespace {

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
  if (config.method != "rope") {
    fail("extend: method: expected rope, which alone is stretched, but the model has " +
         config.method + "; sextant evaluate shows how it reads long texts");
  }
  if (nlohmann::json::parse(config.options).value("train", nlohmann::json(false)) == true) {
    fail(
        "extend: options: train: expected false, as no candidate is for frequencies that were "
        "trained, but got true; sextant evaluate shows how it reads long texts");
  }
}

}  // namespace

Extension extend_model(const EvaluationRequest& request, const OnBlock& on_block) {
  check_rope(read_model_config(request.model));
  ModelOnText model(request);
  const ModelConfig& config = model.saved.config;
  if (model.scoring.reference != config.train_length) {
    fail("extend: lengths: expected the training length among them, " +
         std::to_string(config.train_length));
  }
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
