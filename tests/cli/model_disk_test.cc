// A full disk or files that cannot be read: train, evaluate and extend stop, name the file and keep
// finished work.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/full_disk.h"
#include "tests/cli/small_model.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNoSpace = "write [^ ]+/out/[^ ]+: cannot [a-z ]+: No space left on device";

class ModelDisk : public Model {
 protected:
  std::vector<std::string> extend_words(const std::string& model,
                                        const std::vector<std::string>& more) const {
    std::vector<std::string> words{"extend", path(model),  "--length", "64",
                                   "--text", path("text"), "--blocks", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> evaluate_words(const std::string& model,
                                          const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"evaluate", path(model),  "--lengths", "32,64",
                                   "--text",   path("text"), "--blocks",  "4"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_same(const std::string& file, const std::string& other) const {
    ASSERT_FALSE(read_text(folder_ / file).empty()) << file;
    EXPECT_EQ(read_text(folder_ / file), read_text(folder_ / other)) << file;
  }
};

TEST_F(ModelDisk, AFullOneStopsATrainingAndRoomLetsItGoOn) {
  if (!can_mount()) GTEST_SKIP() << "this user may not mount a small disk (unshare -rm)";
  ASSERT_EQ(train("whole").status, 0);
  struct Case {
    int kilobytes;
    std::string save_seconds;
    bool goes_on;  // there was room for a checkpoint
  };
  // The disk is too small for the plan, for the first checkpoint, for one more checkpoint, and for
  // the model after the training.
  for (const auto& [kilobytes, save_seconds, goes_on] :
       {Case{4, "0", false}, {150, "0", false}, {750, "0", true}, {400, "1000", true}}) {
    SCOPED_TRACE(kilobytes);
    const OwnMounts mounts(folder_.path(), train_words("out", {"--save-seconds", save_seconds}));
    mounts.run("mount -t tmpfs -o size=" + std::to_string(kilobytes) +
               "k tmpfs out && sextant full && ls out >full.ls &&"
               "mount -o remount,size=64m out && sextant roomy && "
               "cp -r out/training/arms/model-0/log.txt out/model.safetensors out/config.json .");
    const Ended full = mounts.ended("full"), roomy = mounts.ended("roomy");
    EXPECT_EQ(full.status, 1) << full.err;
    EXPECT_THAT(full.err, ContainsRegex(kNoSpace));
    EXPECT_EQ(full.out, "");
    EXPECT_THAT(read_text(folder_ / "full.ls"), Not(HasSubstr("config.json")));
    EXPECT_EQ(roomy.status, 0) << roomy.err;
    expect_same("model.safetensors", "whole/model.safetensors");
    expect_same("config.json", "whole/config.json");
    if (goes_on) {
      EXPECT_THAT(full.err, HasSubstr("To go on, when it can be written:"));
      EXPECT_THAT(read_text(folder_ / "log.txt"), HasSubstr("going on at step "));
    }
  }
}

TEST_F(ModelDisk, AFullOneTakesNoStretchedModelAndNoChart) {
  if (!can_mount()) GTEST_SKIP() << "this user may not mount a small disk (unshare -rm)";
  ASSERT_EQ(train("model").status, 0);
  const Ended whole = run(extend_words("model", {"--write", path("whole")}));
  ASSERT_EQ(whole.status, 0) << whole.err;
  const OwnMounts mounts(folder_.path(), extend_words("model", {"--write", path("out/longer")}));
  mounts.run(
      "mount -t tmpfs -o size=60k tmpfs out && sextant full && ls -A out/longer >full.ls && "
      "mount -o remount,size=64m out && sextant roomy && cp -r out/longer .");
  const Ended full = mounts.ended("full");
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, ContainsRegex(kNoSpace));
  // The results are printed nevertheless.
  EXPECT_THAT(full.out, AllOf(HasSubstr("Recommended: "), Not(HasSubstr("the model, read by"))));
  EXPECT_EQ(read_text(folder_ / "full.ls"), "");
  EXPECT_EQ(mounts.ended("roomy").status, 0) << mounts.ended("roomy").err;
  for (const char* file : {"model.safetensors", "config.json", "tokenizer.json"}) {
    expect_same(std::string("longer/") + file, std::string("whole/") + file);
  }

  const OwnMounts drawing(folder_.path(), evaluate_words("model", {"--out", path("out/plots")}));
  drawing.run(
      "mount -t tmpfs -o size=12k tmpfs out && sextant full && "
      "mount -o remount,size=64m out && sextant roomy && cp -r out/plots .");
  EXPECT_EQ(drawing.ended("full").status, 1);
  EXPECT_THAT(drawing.ended("full").err, ContainsRegex(kNoSpace));
  EXPECT_THAT(drawing.ended("full").out, HasSubstr("whole text"));
  EXPECT_EQ(drawing.ended("roomy").status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "plots/loss-by-length.svg"));
}

TEST_F(ModelDisk, AFullOneLeavesTheModelThatWasThere) {
  if (!can_mount()) GTEST_SKIP() << "this user may not mount a small disk (unshare -rm)";
  ASSERT_EQ(train("model").status, 0);
  write_plan({{"seed", 1}});
  ASSERT_EQ(train("other").status, 0);
  const OwnMounts mounts(folder_.path(), extend_words("other", {"--write", path("out/longer")}));
  // The disk has room for one model, but not for the other's weights beside it.
  mounts.run(
      "mount -t tmpfs -o size=64m tmpfs out && cp -r model out/longer && "
      "rm -r out/longer/training && mount -o remount,size=200k out && sextant full && "
      "cp -r out/longer .");
  EXPECT_EQ(mounts.ended("full").status, 1) << mounts.ended("full").out;
  EXPECT_THAT(mounts.ended("full").err, ContainsRegex(kNoSpace));
  for (const char* file : {"model.safetensors", "config.json", "tokenizer.json"}) {
    expect_same(std::string("longer/") + file, std::string("model/") + file);
  }
}

TEST_F(ModelDisk, WhatCannotBeWrittenIsSaidBeforeTheWork) {
  if (!can_mount()) GTEST_SKIP() << "this user may not mount a small disk (unshare -rm)";
  ASSERT_EQ(train("model").status, 0);
  const auto sealed = [&](const std::vector<std::string>& words, const std::string& expected) {
    const OwnMounts mounts(folder_.path(), words);
    mounts.run("mount -t tmpfs -o ro tmpfs out && sextant sealed");
    EXPECT_EQ(mounts.ended("sealed").status, 1);
    EXPECT_THAT(mounts.ended("sealed").err,
                AllOf(HasSubstr(expected), HasSubstr(": Read-only file system")));
    EXPECT_EQ(mounts.ended("sealed").out, "");
  };
  sealed(extend_words("model", {"--write", path("out/longer")}), "write " + path("out") + "/");
  sealed(extend_words("model", {"--out", path("out")}), "write " + path("out") + "/");
  sealed(evaluate_words("model", {"--out", path("out/a/b")}), "write " + path("out") + "/");
  sealed(train_words("out"), "training: cannot make " + path("out/training"));
  EXPECT_THAT(run(extend_words("model", {"--write", path("model")})).err,
              HasSubstr("--write: expected another folder than that of the model"));
}

TEST_F(ModelDisk, AFullStandardOutputIsNoSuccess) {
  ASSERT_EQ(train("model").status, 0);
  const auto to_full = [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  for (const std::vector<std::string>& words :
       {train_words("model"), evaluate_words("model"), extend_words("model", {})}) {
    const Ended ended = run(words, to_full);
    EXPECT_EQ(ended.status, 1) << words[0];
    EXPECT_THAT(ended.err, HasSubstr("No space left on device")) << words[0];
  }
}

TEST_F(ModelDisk, WhatCannotBeReadIsNamed) {
  ASSERT_EQ(train("model").status, 0);
  const auto expect = [](const std::vector<std::string>& words, const std::string& file) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.err, HasSubstr("read " + file + ": cannot read it: Input/output error"));
    EXPECT_EQ(ended.out, "");
  };
  // The file can be opened, but reading its beginning is an input/output error.
  const fs::path broken = "/proc/self/mem";
  expect({"evaluate", path("model"), "--lengths", "32", "--text", broken}, broken);
  expect({"extend", path("model"), "--length", "64", "--text", broken}, broken);
  expect(train_words("new", {"--text", broken}), broken);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  for (const char* name : {"model.safetensors", "config.json"}) {
    const fs::path file = folder_ / "model" / name;
    fs::rename(file, folder_ / "kept");
    fs::create_symlink(broken, file);
    expect(evaluate_words("model"), file);
    expect(extend_words("model", {}), file);
    fs::rename(folder_ / "kept", file);
  }
  // Text that is truncated while the training is stopped counts as another text.
  const Ended stopped = run(train_words("cut"), files_of_at_most(60'000));
  EXPECT_EQ(stopped.status, 1);
  EXPECT_THAT(stopped.err, ContainsRegex("write [^ ]+/cut/[^ ]+: cannot write: File too large"));
  fs::resize_file(folder_ / "text/3.txt", 100);
  const Ended cut = train("cut");
  EXPECT_EQ(cut.status, 1);
  EXPECT_THAT(cut.err, HasSubstr("holds a training with other settings"));
}

}  // namespace
}  // namespace sextant::cli
