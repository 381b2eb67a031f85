// sextant explain and sextant convert, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command.h"
#include "tests/rope_config/published.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Setting : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(Setting, ExplainsPublishedConfigurations) {
  for (const sextant::testing::Published& one : sextant::testing::published_configs()) {
    SCOPED_TRACE(one.name);
    const std::string path = file(one.name + ".json", one.config);
    const Ended text = run({"explain", path});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("wavelength"));
    const Ended numbers = run({"explain", path, "--json"});
    const json parsed = json::parse(numbers.out);
    EXPECT_FALSE(parsed.at("settings").at(0).at("pairs").empty());
  }
}

TEST_F(Setting, WhatIsConvertedReadsAlike) {
  const std::string path = file("config.json", sextant::testing::published_configs()[1].config);
  const auto pairs = [](const std::string& from) {
    return json::parse(run({"explain", from, "--json"}).out).at("settings").at(0).at("pairs");
  };
  for (const char* dialect : {"hf5", "hf4", "gguf"}) {
    const std::string to = (folder_.path() / dialect).string();
    EXPECT_EQ(run({"convert", path, "--to", dialect, "-o", to}).status, 0) << dialect;
    EXPECT_EQ(pairs(to), pairs(path)) << dialect;
  }
}

TEST_F(Setting, ErrorsNameTheKeyAndNothingForeignReachesTheTerminal) {
  const Ended bad = run({"explain", file("bad.json",
                                         "{\"head_dim\": 64, \"rope_theta\": 1e4, "
                                         "\"rope_\x1b[2J\": 3}")});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, HasSubstr("rope_"));
  EXPECT_THAT(bad.out + bad.err, Not(HasSubstr("\x1b")));
  EXPECT_EQ(run({"explain", folder_.path().string()}).status, 1);
  EXPECT_EQ(run({"explain"}).status, 2);
  const std::string good = file("good.json", R"({"head_dim": 64, "rope_theta": 1e4})");
  EXPECT_EQ(run({"explain", good, "--length", "4096"}).status, 0);
  for (const auto& [flag, value] : {std::pair{"--base", "nan"},
                                    {"--base", "0"},
                                    {"--base", "1e40"},
                                    {"--head-dim", "0"},
                                    {"--length", "9999999999999999999"},
                                    {"--length", "1.5"}}) {
    const Ended wrong = run({"explain", good, flag, value});
    EXPECT_EQ(wrong.status, 2) << flag << " " << value;
    EXPECT_THAT(wrong.err, HasSubstr(flag));
    EXPECT_THAT(wrong.err, HasSubstr("expected a"));
  }
  const std::string pipe = (folder_.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(run({"explain", pipe}).err, HasSubstr("expected a file, but got a named pipe"));
  EXPECT_THAT(run({"explain", pipe + "s"}).err, HasSubstr("expected a file, but got none"));
  EXPECT_EQ(run({"convert", folder_.path().string(), "--to", "morse"}).status, 2);
}

}  // namespace
}  // namespace sextant::cli
