// A full disk or files that cannot be read: a survey stops, names the file and keeps finished work;
// when there is room again, the same command continues to the same table.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/full_disk.h"
#include "tests/cli/small_survey.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kTwo{"--methods", "rope,window", "--jobs", "2"};

class SurveyDisk : public Survey {
 protected:
  OwnMounts own_mounts() const { return {folder_.path(), words("out", kTwo)}; }
};

TEST_F(SurveyDisk, NoFileThatIsTooBigIsLostInSilence) {
  const Ended whole = survey("whole", kTwo);
  ASSERT_EQ(whole.status, 0) << whole.err;
  // Limits just too small for each kind of file that a survey writes, the smallest first.
  std::vector<std::uintmax_t> sizes;
  for (const char* file :
       {"manifest.json", "arms/rope-0/arm.json", "arms/rope-0/model.safetensors", "report.html"}) {
    const std::uintmax_t size = fs::file_size(folder_ / "whole" / file);
    sizes.push_back(size - size / 20);  // some contain folder names, which differ
  }
  std::ranges::sort(sizes);
  bool by_worker = false, by_survey = false;
  for (const std::uintmax_t size : sizes) {
    const Ended cut = run(words("out", kTwo), files_of_at_most(size));
    EXPECT_EQ(cut.status, 1) << size << cut.err;
    EXPECT_THAT(cut.err, ContainsRegex("write [^ ]+/out/[^ ]+: cannot write: File too large"));
    by_worker = by_worker || cut.err.find("rope-0: write") != std::string::npos;
    by_survey = by_survey || cut.err.find("sextant: write") != std::string::npos;
  }
  EXPECT_TRUE(by_worker && by_survey);
  const Ended resumed = survey("out", kTwo);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(resumed.out, whole.out);
  for (const char* file : {"results.csv", "summary.csv", "arms/rope-0/model.safetensors"}) {
    EXPECT_EQ(read_text(folder_ / "out" / file), read_text(folder_ / "whole" / file)) << file;
  }
}

TEST_F(SurveyDisk, AFullDiskStopsItAndRoomLetsItGoOn) {
  if (!can_mount()) GTEST_SKIP() << "this user may not mount a small disk (unshare -rm)";
  const Ended whole = survey("whole", kTwo);
  // The disk is too small for the plan, for the first checkpoint, and for the report.
  for (const int kilobytes : {4, 60, 900}) {
    const OwnMounts mounts = own_mounts();
    mounts.run("mount -t tmpfs -o size=" + std::to_string(kilobytes) +
               "k tmpfs out && sextant full && mount -o remount,size=64m out && sextant roomy && "
               "cp out/results.csv roomy.csv");
    const Ended full = mounts.ended("full"), roomy = mounts.ended("roomy");
    EXPECT_EQ(full.status, 1) << kilobytes << full.err;
    EXPECT_THAT(full.err, ContainsRegex("write [^ ]+/out/[^ ]+: cannot [a-z ]+: No space left"));
    EXPECT_EQ(roomy.status, 0) << kilobytes << roomy.err;
    EXPECT_EQ(roomy.out, whole.out) << kilobytes;
    EXPECT_EQ(read_text(folder_ / "roomy.csv"), read_text(folder_ / "whole/results.csv"));
  }
}

TEST_F(SurveyDisk, AReadOnlyFolderIsNamed) {
  if (!can_mount()) GTEST_SKIP() << "this user may not mount a small disk (unshare -rm)";
  const OwnMounts mounts = own_mounts();
  mounts.run("mount -t tmpfs -o ro tmpfs out && sextant sealed");
  EXPECT_EQ(mounts.ended("sealed").status, 1);
  EXPECT_THAT(
      mounts.ended("sealed").err,
      HasSubstr("cannot write in " + (folder_ / "out").string() + ": Read-only file system"));
}

TEST_F(SurveyDisk, AFullStandardOutputIsNoSuccess) {
  const auto to_full = [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  const Ended listed = run({"survey", "--list"}, to_full);
  EXPECT_EQ(listed.status, 1);
  EXPECT_THAT(listed.err, HasSubstr("No space left on device"));
  const Ended planned = run(words("out", {"--dry-run"}), to_full);
  EXPECT_EQ(planned.status, 1);
}

TEST_F(SurveyDisk, TextThatCannotBeReadIsNamed) {
  // The file can be opened, but reading its beginning is an input/output error.
  const Ended broken = survey("out", {"--text", "/proc/self/mem"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.err,
              HasSubstr("text: read /proc/self/mem: cannot read it: Input/output error"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(SurveyDisk, TextThatWasCutOffIsAnotherText) {
  ASSERT_EQ(survey("out", kTwo).status, 0);
  fs::resize_file(folder_ / "text/3.txt", 100);
  const Ended again = survey("out", kTwo);
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, AllOf(HasSubstr("holds a survey with other settings"),
                               ContainsRegex("text.train_bytes|text.test_bytes")));
  // The text is truncated after the survey began, so a worker finds the error.
  fs::remove(folder_ / "out/arms/rope-0/result.json");
  const Ended worker = run({"arm", (folder_ / "out/arms/rope-0").string()});
  EXPECT_EQ(worker.status, 1);
  EXPECT_THAT(worker.err, HasSubstr("text: expected {"));
  fs::remove_all(folder_ / "text");
  EXPECT_THAT(survey("out", kTwo).err,
              AllOf(HasSubstr("text: "), HasSubstr((folder_ / "text").string()),
                    HasSubstr("No such file or directory")));
}

TEST_F(SurveyDisk, WhatVanishedIsDoneAgainAndWhatIsDamagedIsNamed) {
  const Ended whole = survey("out", kTwo);
  const fs::path rope = folder_ / "out/arms/rope-0", window = folder_ / "out/arms/window-0";
  fs::remove_all(rope);
  fs::remove(folder_ / "out/results.json");
  EXPECT_EQ(survey("out", kTwo).out, whole.out);

  write_text(window / "result.json", "{");
  const Ended damaged = survey("out", kTwo);
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.err, HasSubstr((window / "result.json").string() + ": expected JSON"));

  fs::remove(window / "result.json");
  fs::resize_file(rope / "model.safetensors", 1000);
  const Ended cut = survey("out", kTwo);
  EXPECT_EQ(cut.status, 1);
  EXPECT_THAT(cut.err, AllOf(HasSubstr("failed: window-0: "), HasSubstr("model.safetensors")));
  EXPECT_THAT(cut.out, AllOf(HasSubstr("\nrope "), Not(HasSubstr("\nwindow "))));

  fs::remove_all(rope);
  EXPECT_EQ(survey("out", kTwo).out, whole.out);
}

}  // namespace
}  // namespace sextant::cli
