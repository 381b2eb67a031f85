// A folder of arms has a list of command lines for shells and job arrays. Workers leave messages
// beside their arms, which the collecting process reads.
#include "sextant/lab/run/hand_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/arm_lock.h"
#include "sextant/lab/run/measure.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 8;

bool is_first(const ScheduledArm& arm) { return arm.needs.empty(); }

constexpr const char* kProgress = "progress";

// Ignores errors: the arm goes on without progress reports, or is stopped by a signal later.
void write_message(const fs::path& path, const std::string& text) {
  try {
    write_file(path, text);
  } catch (const CannotWrite&) {
  }
}

using nlohmann::json;

ScheduledArm arm_in(const fs::path& folder) {
  if (!fs::exists(folder / kArmFile))
    fail("arm: FOLDER: expected a folder of an arm, with " + std::string(kArmFile) + ", but got " +
         folder.string());
  if (is_measured_arm(folder))
    return {.name = folder.filename().string(), .folder = folder, .done_file = kMeasuredFile};
  const fs::path path = folder / kArmFile;
  const json file = read_json(path);
  const auto [arm, settings] = naming_file(path, [&] {
    const JsonFields fields(file, kArmFile);
    return std::pair(fields.at("arm").get<Arm>(), fields.at("settings").get<Settings>());
  });
  const fs::path siblings = folder.parent_path();
  const std::string& from = arm.weights_from;
  return {.name = arm.name(),
          .folder = folder,
          .done_file = kResultFile,
          .needs = from.empty() ? fs::path() : siblings / folder_name(from),
          .work = work_of(settings, arm)};
}

namespace fs = std::filesystem;

// File systems have names of up to 255 bytes; files of charts have endings beside the label.
constexpr size_t kMostNameBytes = 200;

// Multiplications per token, which approximate its cost.
double weights_read(const DecoderOptions& model) {
  return static_cast<double>(model.layers * (4 * model.width + 2 * model.mlp_width) * model.width +
                             model.width * model.vocabulary);
}

}  // namespace

void write_lists(const fs::path& folder, std::span<const ScheduledArm> arms) {
  std::string first, second;
  for (const ScheduledArm& arm : arms)
    (is_first(arm) ? first : second) += arm.folder.lexically_relative(folder).string() + "\n";
  write_files(std::array{NewFile{.path = folder / kArmsFile, .bytes = first},
                         NewFile{.path = folder / kSecondArmsFile, .bytes = second}});
}

std::string prepared_text(const fs::path& folder, std::span<const ScheduledArm> arms,
                          const std::string& command) {
  const auto first = static_cast<size_t>(std::ranges::count_if(arms, is_first));
  std::string text =
      fmt::format("{} {} prepared: {} in {}", arms.size(), arms.size() == 1 ? "arm is" : "arms are",
                  first, (folder / kArmsFile).string());
  if (first < arms.size())
    text += fmt::format(", {} that use their weights in {}", arms.size() - first,
                        (folder / kSecondArmsFile).string());
  return text + fmt::format(
                    ".\nRun each by `sextant arm FOLDER`, on any machine that has this folder; then"
                    "\n  sextant {} --collect {}\n",
                    command, shell_word(folder.string()));
}

std::string missing_text(std::span<const ScheduledArm> arms) {
  std::vector<std::string> missing;
  for (const ScheduledArm& arm : arms)
    if (!is_done(arm)) missing.push_back(arm.name);
  if (missing.empty()) return "";
  const size_t count = missing.size();
  missing.resize(std::min(count, kMostNames));
  return fmt::format("{} of {} arms are not done: {}{}", count, arms.size(),
                     fmt::join(missing, ", "), count > kMostNames ? ", ..." : "");
}

std::vector<std::string> launcher_words(const std::string& option, const std::string& prefix) {
  if (prefix.find_first_of("'\"\\") != std::string::npos)
    fail(fmt::format("{}: expected words without quotes, separated by spaces, but got {}", option,
                     prefix));
  std::istringstream text(prefix);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty() && !prefix.empty())
    fail(fmt::format("{}: expected a command, but got only spaces", option));
  return words;
}

std::vector<std::string> launched(const std::vector<std::string>& launcher,
                                  std::vector<std::string> command, const fs::path& folder) {
  if (command.front() == "/proc/self/exe") command.front() = fs::read_symlink(command.front());
  command.push_back(fs::absolute(folder).lexically_normal().string());
  const bool by_shell = fs::path(launcher.front()).filename() == "ssh";
  std::vector<std::string> words = launcher;
  for (const std::string& word : command) words.push_back(by_shell ? shell_word(word) : word);
  return words;
}

ProgressReport read_progress(const fs::path& folder) {
  try {
    const std::string text = read_file(folder / kProgress, kMostNoteBytes);
    return report_of(text.substr(0, text.find('\n'))).value_or(ProgressReport{});
  } catch (const Error&) {
    return {};
  }
}

void write_progress(const fs::path& folder, const ProgressReport& report) {
  write_message(folder / kProgress, line_of(report));
}

void ask_to_stop(const fs::path& folder) { write_message(folder / kStopFile, "stop\n"); }

void forget_messages(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / kStopFile, ignored);
  fs::remove(folder / kProgress, ignored);
}

std::vector<ScheduledArm> arms_in(const std::vector<std::string>& folders) {
  std::vector<ScheduledArm> arms;
  for (const std::string& folder : folders) {
    fs::path path = fs::path(folder).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();  // of "FOLDER/"
    arms.push_back(arm_in(path));
  }
  return arms;
}

std::string shell_word(std::string word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,=:+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  for (size_t at = word.find('\''); at != std::string::npos; at = word.find('\'', at + 4))
    word.replace(at, 1, "'\\''");
  word.insert(0, 1, '\'');
  word += '\'';
  return word;
}

std::string folder_name(std::string arm_name) {
  for (size_t n = arm_name.find('/'); n != std::string::npos; n = arm_name.find('/'))
    arm_name.replace(n, 1, "%2F");
  if (arm_name.size() > kMostNameBytes)
    fail(
        fmt::format("methods: {}: expected a name of at most {} bytes for its folder, but got {}; "
                    "--arms takes a label for each method",
                    arm_name.substr(0, 60) + "...", kMostNameBytes, arm_name.size()));
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
    for (const int64_t length : settings.test.lengths)
      tokens += static_cast<double>(settings.test.blocks * length * kMaskPasses);
    return tokens;
  }
  double tokens = 0;
  for (const int64_t length : settings.retrieval.lengths)
    tokens += static_cast<double>(length * settings.retrieval.texts) *
              static_cast<double>(asked_distances(task, length, settings.retrieval).size());
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
