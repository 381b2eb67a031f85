// A candidate for stretching a checkpoint, as engines are told it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sextant/lab/plan/checkpoint.h"
#include "sextant/lab/result/model_work.h"

namespace sextant::lab {

// The words for one engine; empty, with the reason in `obstacle`, if it has none.
struct Words {
  std::string text = {}, obstacle = {};
};

struct EngineWords {
  Words hugging_face;  // the whole config.json
  Words vllm;          // arguments of `vllm serve`
  Words llama_cpp;     // arguments of llama-server
};

// length: N, the longest length that the candidate was chosen for.
EngineWords engine_words(const Checkpoint& checkpoint, const StretchCandidate& candidate,
                         int64_t length);

// For each engine the words of the first candidate that it has words for.
struct EngineChoice {
  std::string candidate;  // its name; empty if there is none
  Words words;            // of the first candidate if there is none
};
struct EngineChoices {
  EngineChoice hugging_face, vllm, llama_cpp;
};
EngineChoices first_words(const Checkpoint& checkpoint, std::span<const StretchCandidate> ordered,
                          int64_t length);

}  // namespace sextant::lab
