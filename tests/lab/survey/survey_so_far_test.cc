#include "sextant/lab/survey/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/arms.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/run/hand_out.h"
#include "tests/lab/arm_results.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> names(std::span<const Arm> arms) {
  std::vector<std::string> all;
  for (const Arm& arm : arms) all.push_back(arm.name());
  return all;
}

TEST(RunningOrder, HasTrainingsOnTextFirstAndTestsLast) {
  Settings settings;
  const std::vector<Arm> arms = make_arms({"none", "pi", "t5", "alibi"}, 2, settings);
  const std::vector<std::string> order = names(running_order(arms));
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 10),
              ElementsAre("alibi-0", "rope-0", "t5-0", "none-0", "none-pairs-0", "rope-pairs-0",
                          "t5-pairs-0", "alibi-pairs-0", "pi-0", "pi-pairs-0"));
  EXPECT_EQ(order[10], "alibi-1") << "seed by seed";
  EXPECT_TRUE(std::ranges::is_permutation(order, names(arms)));
}

// A survey of eight encodings with some arms done.
class SoFar : public testing::Test {
 protected:
  SoFar() {
    options_.settings = settings_of_results();
    options_.directory = folder_.path();
    options_.command = "sextant survey";
    for (const char* label : {"none", "rope", "alibi", "t5", "shaw", "xpos", "learned", "tener"}) {
      options_.arms.push_back(arm_result(label, 0, 0).arm);
    }
  }

  void finish(size_t arm) {
    write_json(arm_directory(options_.directory, options_.arms[arm]) / kResultFile,
               arm_result(options_.arms[arm].label, 0, 0));
  }

  TemporaryFolder folder_;
  SurveyOptions options_;
  nlohmann::json manifest_ = nlohmann::json::object();
};

TEST_F(SoFar, ShowsTheFirstTwoTheNextOnesLaterAndNeverAll) {
  SurveySoFar so_far(options_, manifest_, false);
  std::vector<size_t> shown;
  for (size_t arm = 0; arm < options_.arms.size(); ++arm) {
    finish(arm);
    const std::string lines = so_far.update();
    if (lines.find("Trained at 32 bytes") == std::string::npos) continue;
    shown.push_back(arm + 1);
    EXPECT_THAT(lines, HasSubstr(std::to_string(arm + 1) + " of 8 arms so far\n"));
    EXPECT_THAT(lines, HasSubstr("\n" + options_.arms[arm].label + " "));
  }
  EXPECT_THAT(shown, ElementsAre(2, 5));
}

TEST_F(SoFar, LeavesAReportThatIsMarked) {
  SurveySoFar so_far(options_, manifest_, false);
  finish(0);
  EXPECT_THAT(so_far.update(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / kReportFile));
  finish(1);
  EXPECT_THAT(so_far.update(), HasSubstr("Report so far: " + (folder_ / kReportFile).string()));
  EXPECT_THAT(read_text(folder_ / kReportFile),
              AllOf(HasSubstr("2 of 8 arms so far"), HasSubstr(">rope</td>"),
                    Not(HasSubstr(">alibi</td>"))));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results.json")) << "that one says it is complete";
}

TEST_F(SoFar, SaysOnceThatAResultIsDamaged) {
  SurveySoFar so_far(options_, manifest_, false);
  for (const size_t arm : {size_t{0}, size_t{1}}) finish(arm);
  write_text(arm_directory(options_.directory, options_.arms[1]) / kResultFile, "{");
  EXPECT_THAT(so_far.update(), AllOf(HasSubstr("rope-0"), HasSubstr("expected JSON")));
  EXPECT_THAT(so_far.update(), IsEmpty());
}

// Of hundreds of arms, a message must say which one it means.
TEST_F(SoFar, NamesTheFileOfAResultThatIsDamaged) {
  const std::filesystem::path path =
      arm_directory(options_.directory, options_.arms[1]) / kResultFile;
  const nlohmann::json good = arm_result("rope", 0, 0);
  const auto refuses = [&](const std::string& text, const std::string& message) {
    write_text(path, text);
    std::map<std::string, ArmResult> known;
    EXPECT_THAT(
        [&] { results_of(options_, known); },
        testing::ThrowsMessage<Error>(AllOf(HasSubstr(path.string() + ": "), HasSubstr(message))));
  };
  const auto changed = [&](const char* name, const nlohmann::json& value) {
    nlohmann::json result = good;
    result[name] = value;
    return result.dump();
  };
  refuses("", "expected JSON");
  refuses("{}", "result: arm: expected a value, but it is missing");
  refuses("[1e999]", "expected JSON with numbers that are finite as float64, but got 1e999");
  refuses(std::string(100'000, '['), "expected at most 64 objects and lists within each other");
  refuses(changed("arm", 3), "arm: expected an object");
  refuses(changed("weights", "many"), "result: weights: expected an integer, but got \"many\"");
  refuses(changed("lengths", {3}), "result: lengths: expected an object, but got number");
  refuses(changed("loss_at", {"x"}), "result: loss_at: expected another type");
  refuses(changed("pictures", {{"scores", {{"x"}}}, {"distances", {1}}}), "pictures: scores");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  std::map<std::string, ArmResult> known;
  EXPECT_THAT([&] { results_of(options_, known); },
              testing::ThrowsMessage<Error>(
                  HasSubstr("read " + path.string() + ": expected a file, but got a folder")));
}

TEST_F(SoFar, RefusesANameThatIsTooLongForAFolder) {
  Arm arm = options_.arms[0];
  arm.label = std::string(150, '/');
  EXPECT_THAT([&] { arm_directory(options_.directory, arm); },
              testing::ThrowsMessage<Error>(
                  HasSubstr("expected a name of at most 200 bytes for its folder, but got 4")));
}

}  // namespace
}  // namespace sextant::lab
