#include "sextant/lab/run/survey_arms.h"

#include <fmt/format.h>

#include "sextant/base/error.h"
#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/result/result.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

// File systems have names of up to 255 bytes; files of charts have endings beside the label.
constexpr size_t kMostNameBytes = 200;

// Multiplications per token, which approximate its cost.
double weights_read(const DecoderOptions& model) {
  return static_cast<double>(model.layers * (4 * model.width + 2 * model.mlp_width) * model.width +
                             model.width * model.vocabulary);
}

}  // namespace

std::string folder_name(std::string arm_name) {
  for (size_t n = arm_name.find('/'); n != std::string::npos; n = arm_name.find('/')) {
    arm_name.replace(n, 1, "%2F");
  }
  if (arm_name.size() > kMostNameBytes) {
    fail(
        fmt::format("methods: {}: expected a name of at most {} bytes for its folder, but got {}; "
                    "--arms takes a label for each method",
                    arm_name.substr(0, 60) + "...", kMostNameBytes, arm_name.size()));
  }
  return arm_name;
}

fs::path arm_directory(const fs::path& survey, const Arm& arm) {
  return survey / "arms" / folder_name(arm.name());
}

bool is_done(const fs::path& survey, const Arm& arm) {
  return fs::exists(arm_directory(survey, arm) / kResultFile);
}

double test_tokens(const Settings& settings, Task task) {
  if (is_on_text(task)) {
    double tokens = static_cast<double>(settings.test.blocks * settings.test.longest()) *
                    static_cast<double>(settings.test.lengths.size());
    if (task == Task::kText) return tokens;
    // Each pass over a masked window is a sequence of its own.
    for (const int64_t length : settings.test.lengths) {
      tokens += static_cast<double>(settings.test.blocks * length * kMaskPasses);
    }
    return tokens;
  }
  double tokens = 0;
  for (const int64_t length : settings.retrieval.lengths) {
    tokens += static_cast<double>(length * settings.retrieval.texts) *
              static_cast<double>(asked_distances(task, length, settings.retrieval).size());
  }
  return tokens;
}

double work_of(const Settings& settings, const Arm& arm) {
  // A training step costs about three times a forward pass.
  const auto train = static_cast<double>(3 * training_of(settings, arm).bytes);
  return weights_read(model_of(settings, arm)) / weights_read(settings.model) *
         ((arm.trains() ? train : 0) + test_tokens(settings, arm.task));
}

std::vector<ScheduledArm> scheduled(const fs::path& survey, const Settings& settings,
                                    std::span<const Arm> arms) {
  std::vector<ScheduledArm> all;
  for (const Arm& arm : arms) {
    const fs::path folder = arm_directory(survey, arm);
    const std::string& from = arm.weights_from;
    const fs::path needs = from.empty() ? fs::path() : survey / "arms" / folder_name(from);
    all.push_back({.name = arm.name(),
                   .folder = folder,
                   .done_file = kResultFile,
                   .needs = needs,
                   .work = work_of(settings, arm)});
  }
  return all;
}

}  // namespace sextant::lab
