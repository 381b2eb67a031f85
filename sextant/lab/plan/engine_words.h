// A candidate for stretching a checkpoint, as engines are told it.
#pragma once

#include <cstdint>
#include <string>

#include "sextant/lab/plan/checkpoint.h"
#include "sextant/lab/run/model_work.h"

namespace sextant::lab {

// The words for one engine; empty, with the reason in `obstacle`, if it has none.
struct Words {
  std::string text, obstacle;
};

struct EngineWords {
  Words hugging_face;  // the whole config.json
  Words vllm;          // arguments of `vllm serve`
  Words llama_cpp;     // arguments of llama-server
};

// length: N, the longest length that the candidate was chosen for.
EngineWords engine_words(const Checkpoint& checkpoint, const StretchCandidate& candidate,
                         int64_t length);

}  // namespace sextant::lab
