// Evaluates a model from a folder on text at several lengths.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "sextant/lab/data/corpus.h"
#include "sextant/lab/result/model_work.h"
#include "sextant/lab/torch/evaluate.h"
#include "sextant/lab/torch/model_folder.h"

namespace sextant::lab {

// A model, a text and the scoring, checked for consistency.
struct ModelOnText {
  explicit ModelOnText(const EvaluationRequest& request);
  ModelOnText(const ModelOnText&) = delete;  // blocks point into the corpus
  ModelOnText& operator=(const ModelOnText&) = delete;

  Evaluation evaluate(const std::function<void(int64_t)>& on_block) const;
  ModelEvaluation described(const Evaluation& evaluation) const;

  c10::Device device;
  SavedModel saved;
  Corpus corpus;
  TestOptions test;
  Scoring scoring;
  int64_t drop_channels = 0;
  uint64_t drop_seed = 0;
  std::vector<std::string_view> blocks;
};

// See Plugin::evaluate_model. Throws Error that names the invalid field of the request.
ModelEvaluation evaluate_model(const EvaluationRequest& request, const OnBlock& on_block);

// Evaluates a trained rope past its training length with every candidate of stretch_candidates.h.

// request.lengths contains L; its last element is the target length. Throws Error if the model's
// method is not rope or if its frequencies were trained.
Extension extend_model(const EvaluationRequest& request, const OnBlock& on_block);

// Writes the model with the method of a candidate as a folder: see model_folder.h.
void write_extended(const std::filesystem::path& model, const StretchCandidate& candidate,
                    const std::filesystem::path& folder);

}  // namespace sextant::lab
