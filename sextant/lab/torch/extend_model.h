// Evaluates a trained rope past its training length with every candidate of stretch_candidates.h.
#pragma once

#include <filesystem>

#include "sextant/lab/result/model_work.h"

namespace sextant::lab {

// request.lengths contains L; its last element is the target length. Throws Error if the model's
// method is not rope or if its frequencies were trained.
Extension extend_model(const EvaluationRequest& request, const OnBlock& on_block);

// Writes the model with the method of a candidate as a folder: see model_folder.h.
void write_extended(const std::filesystem::path& model, const StretchCandidate& candidate,
                    const std::filesystem::path& folder);

}  // namespace sextant::lab
