// A trained rope, read past its length in every way there is.
#pragma once

#include <filesystem>

#include "sextant/lab/run/model_work.h"

namespace sextant::lab {

// request.lengths: L is among them, the last is the length wanted. Throws Error if the model is no
// rope, or one whose frequencies were trained.
Extension extend_model(const EvaluationRequest& request, const OnBlock& on_block);

// The model with another way of reading, as a folder: see model_folder.h.
void write_extended(const std::filesystem::path& model, const StretchCandidate& candidate,
                    const std::filesystem::path& folder);

}  // namespace sextant::lab
