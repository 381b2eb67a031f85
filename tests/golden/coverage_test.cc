// Lists the golden cases that are covered and those that are not, because passing tests say nothing
// about the latter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "tests/golden/trial.h"

namespace sextant::golden {
namespace {

// Cases of tables_golden_test.cc, and of methods_golden_test.cc, which needs libtorch.
const std::vector<std::string_view> kTables = {
    "alibi_slopes",      "rope_layout_permutation", "rope_phase_u64",     "rope_large_positions",
    "sinusoidal_tables", "t5_bucket_tables",        "deberta_log_bucket",
};

// Cases of stretches_golden_test.cc; Python's conformance tests use their q, k and v.
const std::vector<std::string_view> kStretches = {
    "ext_ntk_variants",
    "ext_ntk_by_parts_old",
    "ext_yarn",
    "dynamic_ntk_tables",
    "dynamic_ntk_hf_state",
    "dynamic_yarn_repo_classes",
    "ext_longrope_microsoft",
    "dynamic_exact_yarn_paper",
    "logn_scale",
    "ssmax",
    "attn_temperature_tuning",
};

const std::vector<std::string_view> kMethods = {
    "complex_embed_",          "fire_",       "fox_", "learned_bert_past0", "learned_gpt2",
    "sinusoidal_added_scaled", "window_masks"};

bool is_covered(const std::string& name) {
  const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return family_of(name) || std::any_of(kTables.begin(), kTables.end(), starts) ||
         std::any_of(kStretches.begin(), kStretches.end(), starts) ||
         std::any_of(kMethods.begin(), kMethods.end(), starts);
}

// A test whose case is missing is skipped, so all cases listed for the tree must be present.
TEST(Golden, EveryListedCaseIsInTheTree) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SEXTANT_SOURCE_DIR) / "tests" / "golden" / "data"))
    if (entry.path().extension() == ".npz") files.push_back(entry.path().stem());
  EXPECT_THAT(files, ::testing::UnorderedElementsAreArray(kept_names()));
}

TEST(Golden, EveryCaseKeptInTheTreeIsTested) {
  const auto kept = kept_names();
  ASSERT_FALSE(kept.empty());
  for (const std::string& name : kept) EXPECT_TRUE(is_covered(name)) << name;
}

// Prints what the other tests omit, without assertions.
TEST(Golden, CasesThatNobodyTestsAreListed) {
  const auto files = golden_files();
  size_t covered = 0;
  for (const auto& [name, path] : files) {
    if (!is_covered(name)) {
      std::cout << "not covered: " << name << "\n";
      continue;
    }
    ++covered;
    if (!family_of(name)) continue;
    const Golden golden(path);
    const Trial trial = family_of(name)->trial(golden);
    for (const std::string& answer : golden.answers()) {
      if (!trial.excused.contains(answer)) continue;
      std::cout << "not compared: " << name << ": " << answer << ": " << trial.excused.at(answer)
                << "\n";
    }
  }
  std::cout << covered << " of " << files.size() << " golden cases are covered.\n";
}

}  // namespace
}  // namespace sextant::golden
