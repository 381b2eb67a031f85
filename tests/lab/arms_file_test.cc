#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/lab/survey.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Arms : public testing::Test {
 protected:
  ArmsFile read(const std::string& text) {
    write_text(folder_ / "arms.json", text);
    return read_arms_file(folder_ / "arms.json");
  }
  void refuses(const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { read(text); }, ThrowsMessage<Error>(HasSubstr("arms.json: " + message)));
  }
  TemporaryFolder folder_;
};

TEST_F(Arms, AreWordsOrObjects) {
  const ArmsFile file = read(R"({"arms": ["rope:base=1e6", {"method": "t5"},
      {"label": "far", "method": "rope", "options": {"dim": 16}}]})");
  ASSERT_EQ(file.arms.size(), 3);
  EXPECT_EQ(file.arms[0].label, "rope:base=1e6");
  EXPECT_EQ(file.arms[0].method, "rope");
  EXPECT_EQ(nlohmann::json::parse(file.arms[0].options), nlohmann::json({{"base", 1e6}}));
  EXPECT_EQ(file.arms[1].label, "t5");
  EXPECT_EQ(file.arms[2].label, "far");
  EXPECT_EQ(file.arms[2].options, R"({"dim":16})");
  EXPECT_EQ(file.settings, "{}");
}

TEST_F(Arms, MayBringSettings) {
  const ArmsFile file =
      read(R"({"arms": ["t5"], "settings": {"training": {"bytes": 4096}, "test": {"bin": 8}}})");
  const Settings settings = laid_over({}, file.settings, "arms.json");
  EXPECT_EQ(settings.training.bytes, 4096);
  EXPECT_EQ(settings.training.length, 128);
  EXPECT_EQ(settings.test.bin, 8);
  EXPECT_THAT([] { laid_over({}, R"({"training": {"byte": 1}})", "arms.json"); },
              ThrowsMessage<Error>(
                  "arms.json: settings: training: byte: expected no such field, but got one"));
}

TEST_F(Arms, SayWhatIsWrong) {
  refuses("[]", "expected an object, but got array");
  refuses("{}", "arms: expected a value, but it is missing");
  refuses(R"({"arms": []})", "arms: expected a list of methods, but got []");
  refuses(R"({"arms": ["t5"], "lengths": [1]})", "lengths: expected no such field");
  refuses(R"({"arms": [{"label": "a"}]})", "arms: method: expected a value");
  refuses(R"({"arms": [{"method": "t5", "options": 3}]})", "arms: options: expected an object");
  refuses(R"({"arms": [{"method": "t5", "label": ""}]})", "arms: label: expected a name");
  refuses(R"({"arms": ["t5", {"method": "t5"}]})", "arms: label: expected each once, but got t5");
  refuses(R"({"arms": ["t5"], "settings": 1})", "settings: expected an object, but got 1");
}

}  // namespace
}  // namespace sextant::lab
