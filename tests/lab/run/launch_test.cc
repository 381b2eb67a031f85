#include "sextant/lab/run/hand_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/base/error.h"
#include "sextant/lab/run/arm_lock.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(Launch, WordsAreSeparatedBySpaces) {
  EXPECT_THAT(launcher_words("--launch", " srun -n1  -c2 "), ElementsAre("srun", "-n1", "-c2"));
  EXPECT_THAT(launcher_words("--launch", ""), ElementsAre());
  for (const char* wrong : {"ssh 'a b'", "  "})
    EXPECT_THROW(launcher_words("--launch", wrong), Error);
}

TEST(Launch, PathsAreAbsolute) {
  EXPECT_THAT(launched({"srun", "-n1"}, {"/proc/self/exe", "arm"}, "arms/rope-0"),
              ElementsAre("srun", "-n1", fs::read_symlink("/proc/self/exe").string(), "arm",
                          (fs::current_path() / "arms/rope-0").string()));
}

TEST(Launch, WordsOfSshAreQuotedForItsShell) {
  EXPECT_THAT(launched({"/usr/bin/ssh", "n03"}, {"/bin/sextant", "arm"}, "/runs/it's/a b"),
              ElementsAre("/usr/bin/ssh", "n03", "/bin/sextant", "arm", "'/runs/it'\\''s/a b'"));
  EXPECT_THAT(launched({"srun"}, {"/bin/sextant", "arm"}, "/runs/a b"),
              ElementsAre("srun", "/bin/sextant", "arm", "/runs/a b"));
}

TEST(Launch, ReportsGoThroughAFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_progress(folder.path()).total, 0);
  write_progress(folder.path(), {.done = 2.5, .total = 4, .text = "step 3/4"});
  const ProgressReport report = read_progress(folder.path());
  EXPECT_EQ(report.done, 2.5);
  EXPECT_EQ(report.total, 4);
  EXPECT_EQ(report.text, "step 3/4");
  ask_to_stop(folder.path());
  EXPECT_TRUE(fs::exists(folder / kStopFile));
  forget_messages(folder.path());
  EXPECT_FALSE(fs::exists(folder / kStopFile));
  EXPECT_EQ(read_progress(folder.path()).total, 0);
}

}  // namespace
}  // namespace sextant::lab
