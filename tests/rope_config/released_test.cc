// Released models: configurations that follow from their configurations by official code.
//
// released/README.md describes the sources of the values and the format of the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::IsSupersetOf;

constexpr double kRelative = 1e-12;  // frequencies in double against formulas in double

std::filesystem::path folder() {
  return std::filesystem::path(SEXTANT_SOURCE_DIR) / "tests" / "rope_config" / "released";
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".json") found.push_back(entry.path().stem());
  }
  std::ranges::sort(found);
  return found;
}

json load(const std::string& name) {
  std::ifstream file(folder() / (name + ".json"));
  return json::parse(file);
}

// The configurations to which a group of expectations applies: they have its kind of layers (if the
// reader names kinds), rotate or not as it does, and share a layer with it.
std::vector<RopeConfig> configs_of(const json& group, const std::vector<RopeConfig>& ropes) {
  const std::string kind = group.value("layers", "");
  const auto numbers = group.value("layer_numbers", std::vector<int64_t>{});
  std::vector<RopeConfig> matching;
  for (const RopeConfig& rope : ropes) {
    const auto& own = rope.layer_numbers;
    const bool shares =
        numbers.empty() || own.empty() || std::ranges::find_first_of(own, numbers) != own.end();
    const bool named = kind.empty() || rope.layers.empty() || rope.layers == kind;
    if (shares && named && rope.rotates == group.at("rotates").get<bool>()) {
      matching.push_back(rope);
    }
  }
  return matching;
}

void expect_near(const json& group, const char* key, double got) {
  if (!group.contains(key)) return;
  const double expected = group.at(key).get<double>();
  EXPECT_NEAR(got, expected, kRelative * std::max(std::fabs(expected), 1e-300)) << key;
}

void expect_integer(const json& group, const char* key, int64_t got) {
  if (!group.contains(key)) return;
  EXPECT_EQ(got, group.at(key).get<int64_t>()) << key;
}

void expect_frequencies(const json& group, const RopeConfig& rope) {
  const int64_t length = group.value("length", std::max<int64_t>(rope.max_length, 1));
  const Spectrum spectrum = spectrum_of(rope, length);
  int64_t rotating = 0;
  double slowest = HUGE_VAL;
  for (const auto& pair : spectrum.pairs) {
    const auto frequency = static_cast<double>(pair.frequency);
    if (frequency == 0) continue;
    ++rotating;
    slowest = std::min(slowest, frequency);
  }
  expect_integer(group, "pairs", rotating);
  expect_near(group, "slowest", slowest);
  expect_near(group, "attention_factor", spectrum.gain);
  const Explained explained = explain(rope, length);
  expect_near(group, "softmax_scale", explained.scale);
  EXPECT_NEAR(explained.rotated_scale / (explained.scale * spectrum.gain * spectrum.gain), 1,
              kRelative);
}

void expect_config(const json& group, const RopeConfig& rope) {
  expect_integer(group, "head_dim", rope.head_dim);
  expect_integer(group, "rotary_dim", rope.rotary_dim);
  expect_near(group, "base", rope.base);
  expect_integer(group, "chunk", rope.chunk);
  if (group.contains("window")) {
    EXPECT_EQ(rope.window, group.at("window").get<int64_t>()) << "window";
    EXPECT_EQ(rope.bounded_in, "") << "a window that only some of a group's layers have";
  }
  if (group.contains("pairing")) {
    const auto expected =
        group.at("pairing") == "interleaved" ? Pairing::kInterleaved : Pairing::kHalfSplit;
    EXPECT_EQ(rope.pairing, expected) << "pairing";
  }
  if (rope.rotates) expect_frequencies(group, rope);
}

// If the group lists layers, the configurations must have these layers.
void expect_layers(const json& group, const std::vector<RopeConfig>& ropes) {
  if (!group.contains("layer_numbers")) return;
  std::vector<int64_t> got;
  for (const RopeConfig& rope : ropes) {
    got.insert(got.end(), rope.layer_numbers.begin(), rope.layer_numbers.end());
  }
  std::ranges::sort(got);
  const auto expected = group.at("layer_numbers").get<std::vector<int64_t>>();
  // Layers of linear attention may be among those that do not rotate.
  if (group.at("rotates").get<bool>()) {
    EXPECT_EQ(got, expected) << "layer_numbers";
  } else {
    EXPECT_THAT(got, IsSupersetOf(expected)) << "layer_numbers";
  }
}

class Released : public ::testing::TestWithParam<std::string> {};

TEST_P(Released, ReadsAsOfficialCodeRuns) {
  const json file = load(GetParam());
  const auto ropes = read_rope_config_bytes(file.at("config").dump(), {}).configs;
  std::vector<RopeConfig> rotating;
  std::ranges::copy_if(ropes, std::back_inserter(rotating), &RopeConfig::rotates);
  size_t seen = 0;
  for (const json& group : file.at("expect").at("groups")) {
    SCOPED_TRACE("group " + group.value("layers", "") +
                 (group.at("rotates").get<bool>() ? "" : " (NoPE)"));
    const std::vector<RopeConfig> own = configs_of(group, ropes);
    EXPECT_FALSE(own.empty()) << "no such group of layers";
    if (own.empty()) continue;
    expect_layers(group, own);
    for (const RopeConfig& rope : own) expect_config(group, rope);
    if (group.at("rotates").get<bool>()) seen += own.size();
  }
  EXPECT_EQ(seen, rotating.size()) << "groups that rotate and are not expected, or are two in one";
}

// Values without a source cannot be checked.
TEST_P(Released, NamesItsSource) {
  const json file = load(GetParam());
  const json& source = file.at("source");
  EXPECT_NE(source.at("repository").get<std::string>().find('/'), std::string::npos);
  EXPECT_FALSE(source.at("path").get<std::string>().empty());
  EXPECT_EQ(source.at("commit").get<std::string>().size(), 40U);
  EXPECT_FALSE(file.at("expect").at("source of expectation").get<std::string>().empty());
}

INSTANTIATE_TEST_SUITE_P(Models, Released, ::testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace sextant::testing
