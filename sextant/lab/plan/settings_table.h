// The settings of surveys as a table with one row for each: its place in JSON, its range, and its
// option of `sextant survey`. JSON and checks (settings.cc) and the command (cli/survey.cc) follow
// the table. The objective, norm and activation, which are words, have no rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// Far above the needs of surveys that run for minutes; the product of two values does not overflow.
inline constexpr int64_t kMostSetting = int64_t{1} << 30;

// A setting of one Settings object.
struct Setting {
  struct Range {
    double low = 0, high = 0;
  };

  // The JSON object that has it: "training"; "" for that of all settings. DecoderOptions reads and
  // writes "model" by itself.
  std::string_view part;
  const char* name;
  std::variant<int*, int64_t*, double*, std::string*, std::vector<int64_t>*> member;
  std::optional<Range> range = {};    // empty: check(Settings) compares it with other settings
  const char* help = nullptr;         // of its option; null: the command has none
  std::optional<int64_t> smoke = {};  // its value in a survey that only tries everything
  // Sets it by the settings that it follows from if it is not given.
  void (*follow)(Settings& settings) = nullptr;

  std::string option() const;  // "--learning-rate", "--retrieval-batch"
};

// In the order of the command's help.
std::vector<Setting> settings_table(Settings& settings);

}  // namespace sextant::lab
