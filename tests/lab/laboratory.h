// A survey that takes seconds: a tiny model and synthetic text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sextant/files/json_fields.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/result/result.h"
#include "tests/lab/synthetic_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {

inline Settings tiny_settings() {
  return {.model = {.layers = 1, .width = 16, .heads = 2, .key_heads = 2, .mlp_width = 32},
          .training = {.length = 16, .bytes = 4 * 16 * 95, .batch = 4, .learning_rate = 0.02},
          .test = {.lengths = {16, 32, 64}, .blocks = 4, .bin = 16, .share = 0.1},
          .retrieval = {.steps = 0,
                        .batch = 8,
                        .length = 16,
                        .learning_rate = 0.02,
                        .layers = 1,
                        .width = 16,
                        .lengths = {16, 32},
                        .texts = 8}};
}

// The same with the retrieval task.
inline Settings tiny_settings_with_pairs(int64_t steps) {
  Settings settings = tiny_settings();
  settings.retrieval.steps = steps;
  return settings;
}

// A folder with an arm that is ready to run, and its text beside it.
inline std::filesystem::path prepare_arm(const TemporaryFolder& folder, const Arm& arm,
                                         const Settings& settings) {
  const std::filesystem::path text = folder / "text";
  uint64_t number = 0;
  for (const std::string& document : synthetic_documents(40, 500)) {
    write_text(text / std::to_string(number++), document);
  }
  const Corpus corpus = read_corpus(std::vector{text}, settings.test.share);
  const std::filesystem::path directory = folder / ("arms/" + arm.name());
  write_json(directory / kArmFile, {{"arm", arm},
                                    {"settings", settings},
                                    {"text", identity(corpus)},
                                    {"files", {text.string()}}});
  return directory;
}

}  // namespace sextant::lab
