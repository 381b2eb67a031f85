#include "sextant/lab/run/hand_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sextant/files/write_file.h"
#include "sextant/lab/run/shell_word.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 8;

bool is_first(const ScheduledArm& arm) { return arm.needs.empty(); }

}  // namespace

void write_lists(const fs::path& folder, std::span<const ScheduledArm> arms) {
  std::string first, second;
  for (const ScheduledArm& arm : arms) {
    (is_first(arm) ? first : second) += arm.folder.lexically_relative(folder).string() + "\n";
  }
  write_files(std::array{NewFile{.path = folder / kArmsFile, .bytes = first},
                         NewFile{.path = folder / kSecondArmsFile, .bytes = second}});
}

std::string prepared_text(const fs::path& folder, std::span<const ScheduledArm> arms,
                          const std::string& command) {
  const auto first = static_cast<size_t>(std::ranges::count_if(arms, is_first));
  std::string text =
      fmt::format("{} {} prepared: {} in {}", arms.size(), arms.size() == 1 ? "arm is" : "arms are",
                  first, (folder / kArmsFile).string());
  if (first < arms.size()) {
    text += fmt::format(", {} that use their weights in {}", arms.size() - first,
                        (folder / kSecondArmsFile).string());
  }
  return text + fmt::format(
                    ".\nRun each by `sextant arm FOLDER`, on any machine that has this folder; then"
                    "\n  sextant {} --collect {}\n",
                    command, shell_word(folder.string()));
}

std::string missing_text(std::span<const ScheduledArm> arms) {
  std::vector<std::string> missing;
  for (const ScheduledArm& arm : arms) {
    if (!is_done(arm)) missing.push_back(arm.name);
  }
  if (missing.empty()) return "";
  const size_t count = missing.size();
  missing.resize(std::min(count, kMostNames));
  return fmt::format("{} of {} arms are not done: {}{}", count, arms.size(),
                     fmt::join(missing, ", "), count > kMostNames ? ", ..." : "");
}

}  // namespace sextant::lab
