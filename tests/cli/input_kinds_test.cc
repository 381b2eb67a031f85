// Each command is given inputs that are no files: an endless one, a named pipe without a writer, a
// folder, a loop of links, and an empty file. It ends with a message that names the input and has
// no words of a library, within a limit of memory that reading without bounds exceeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/cli/small_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr rlim_t kMemory = rlim_t{4} << 30;
constexpr unsigned kSeconds = 60;  // a guard: no command waits

// Answers `-c` with success. As the worker, it makes the records of one arm.
constexpr const char* kPython = R"(#!/usr/bin/env python3
import json, pathlib, sys
if sys.argv[1:3] == ["-m", "sextant.doctor.examine"]:
    sys.exit(" ".join(sys.argv))
for folder in map(pathlib.Path, sys.argv[5:] if sys.argv[1] == "-m" else []):
    arm = json.loads((folder / "arm.json").read_text())
    if arm["measure"] == "losses":
        asked = arm["losses"]
        lines = [{"block": block, "length": length, "nats": [2.0], "tokens": [1],
                  "last": [2.0, 1, 4]} for block in range(asked["blocks"])
                 for length in asked["lengths"]]
    else:
        lines = [{"task": "needle", "length": 512, "depth": n, "sample": n, "tokens": 500,
                  "score": 1.0, "expected": ["42"], "answer": "42"} for n in (0, 1)]
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "done.json").write_text("{}")
)";

constexpr const char* kAnyConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000,
    "max_position_embeddings": 512, "rope_theta": 10000.0})";
constexpr const char* kPlan = R"({"model": {"layers": 1, "width": 32, "heads": 2},
    "training": {"length": 32, "bytes": 25600}, "test": {"blocks": 8, "share": 0.2}})";

using Words = std::vector<std::string>;

// An input of a command. In `words`, @ stands for the folder of the test, in which all paths are.
struct Input {
  std::string name;
  Words words;
  std::string file;  // replaced by what is no file
  struct Rest {
    std::string named = {};  // the path in the message, if it is another
    Words before = {};       // a command that writes what is read
    bool needed = true;      // otherwise the command may do without it
    bool may_be_empty = false;
  } rest = {};
};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words kText = {"--text", "@/text", "--blocks", "3"}, kOut = {"--out", "@/out"};
const Words kEvaluate = with(with({"evaluate", "@/model", "--lengths", "512"}, kText), kOut);
const Words kExtend =
    with(with({"extend", "@/model", "--length", "1024", "--candidates", "pi"}, kText), kOut);
const Words kRetrieve = with({"retrieve", "@/model", "--lengths", "512", "--tasks", "needle",
                              "--samples", "2", "--depths", "2"},
                             kOut);
const Words kAsk = with({"retrieve", "@/model", "--endpoint", "http://127.0.0.1:9"}, kOut);
const Words kSurvey = with({"survey", "--smoke", "--text", "@/text", "--share", "0.2",
                            "--retrieval-steps", "0", "--methods", "rope"},
                           kOut);
const Words kTrain = {"train", "@/plan.json", "--out", "@/out", "--text", "@/text"};
const Words kArm = {"arm", "@/out/arms/direct"};
const Words kPrepare = with(kEvaluate, {"--prepare"});

const std::vector<Input> kInputs = {
    {"explain", {"explain", "@/config.json"}, "config.json"},
    {"explain_gguf", {"explain", "@/model.gguf"}, "model.gguf"},
    {"explain_compose", {"explain", "@/compose.yaml"}, "compose.yaml"},
    {"explain_folder", {"explain", "@/model"}, "model/config.json", {.named = "model"}},
    {"explain_revision", {"explain", "@/hub"}, "hub/refs/main", {.needed = false}},
    {"convert", {"convert", "@/config.json", "--as", "hf5"}, "config.json"},
    {"doctor_first", {"doctor", "@/config.json", "@/model.gguf"}, "config.json"},
    {"doctor_second", {"doctor", "@/config.json", "@/model.gguf"}, "model.gguf"},
    {"doctor_gguf", {"doctor", "@/model.gguf"}, "model.gguf"},
    {"doctor_examined", {"doctor", "--examined", "@/examined.json"}, "examined.json"},
    {"survey_json", {"survey", "--arms", "@/arms.json", "--dry-run"}, "arms.json"},
    {"survey_toml", {"survey", "--arms", "@/arms.toml", "--dry-run"}, "arms.toml"},
    {"survey_text", {"survey", "--text", "@/text/0.txt", "--dry-run"}, "text/0.txt"},
    {"survey_methods",
     {"survey", "--methods", "@/own.py:Own", "--dry-run"},
     "own.py",
     {.may_be_empty = true}},
    {"survey_manifest", kSurvey, "out/manifest.json"},
    {"survey_collect", {"survey", "--collect", "@/out"}, "out/command.json"},
    {"train_json", kTrain, "plan.json"},
    {"train_toml",
     {"train", "@/plan.toml", "--out", "@/out", "--text", "@/none"},  // empty: all defaults
     "plan.toml"},
    {"train_text", {"train", "@/plan.json", "--out", "@/out", "--text", "@/one.txt"}, "one.txt"},
    {"train_manifest", kTrain, "out/training/manifest.json"},
    {"arm", kArm, "out/arms/direct/arm.json", {.before = kPrepare}},
    {"arm_lock", kArm, "out/arms/direct/lock", {.before = kPrepare, .needed = false}},
    {"arm_stop", kArm, "out/arms/direct/stop", {.before = kPrepare, .needed = false}},
    {"arm_progress", kArm, "out/arms/direct/progress", {.before = kPrepare, .needed = false}},
    {"evaluate_collect",
     {"evaluate", "--collect", "@/out"},
     "out/command.json",
     {.before = kPrepare}},
    {"evaluate_config", kEvaluate, "model/config.json", {.named = "model"}},
    {"evaluate_tokenizer", kEvaluate, "model/tokenizer.json", {.may_be_empty = true}},
    {"evaluate_weights",
     kEvaluate,
     "model/model.safetensors",
     {.named = "model", .may_be_empty = true}},
    {"evaluate_index", kEvaluate, "model/model.safetensors.index.json"},
    {"evaluate_text",
     with({"evaluate", "@/model", "--lengths", "512", "--text", "@/one.txt"}, kOut), "one.txt"},
    {"evaluate_manifest", kEvaluate, "out/manifest.json"},
    {"evaluate_records", kEvaluate, "out/arms/direct/records.jsonl", {.before = kEvaluate}},
    {"evaluate_facts", kEvaluate, "out/arms/direct/done.json", {.before = kEvaluate}},
    {"extend_config", kExtend, "model/config.json", {.named = "model"}},
    {"extend_text", with({"extend", "@/model", "--length", "1024", "--text", "@/one.txt"}, kOut),
     "one.txt"},
    {"extend_records", kExtend, "out/arms/pi/records.jsonl", {.before = kExtend}},
    {"retrieve_config", kRetrieve, "model/config.json", {.named = "model"}},
    {"retrieve_tokenizer", kRetrieve, "model/tokenizer.json", {.may_be_empty = true}},
    {"retrieve_endpoint", kAsk, "model/tokenizer.json", {.may_be_empty = true}},
    {"retrieve_records", kRetrieve, "out/arms/512/records.jsonl", {.before = kRetrieve}},
    {"report", {"report", "@/kept.json"}, "kept.json"},
    {"report_manifest", {"report", "@/out"}, "out/manifest.json", {.before = kExtend}},
    {"report_results", {"report", "@/out"}, "out/results.json", {.before = kExtend}},
#ifdef SEXTANT_HAS_LABORATORY
    {"report_survey", {"report", "@/out"}, "out/results.json", {.before = kSurvey}},
    {"evaluate_gguf", with({"evaluate", "@/model.gguf", "--lengths", "512"}, kText), "model.gguf"},
    {"survey_result", kSurvey, "out/arms/rope-0/result.json", {.before = kSurvey}},
    {"survey_results", kSurvey, "out/results.json", {.before = kSurvey, .needed = false}},
    {"arm_of_survey",
     {"arm", "@/out/arms/rope-0"},
     "out/arms/rope-0/arm.json",
     {.before = with(kSurvey, {"--prepare"})}},
    {"arm_state",
     {"arm", "@/out/arms/rope-0"},
     "out/arms/rope-0/checkpoint-00000001.sxt",
     {.before = with(kSurvey, {"--prepare"}), .needed = false}},
    {"train_result", kTrain, "out/training/arms/model-0/result.json", {.before = kTrain}},
    {"evaluate_bytes_config",
     with({"evaluate", "@/out", "--lengths", "32"}, kText),
     "out/config.json",
     {.named = "out", .before = kTrain}},
    {"evaluate_bytes_weights",
     with({"evaluate", "@/out", "--lengths", "32"}, kText),
     "out/model.safetensors",
     {.before = kTrain}},
    {"extend_bytes_weights",
     with({"extend", "@/out", "--length", "64"}, kText),
     "out/model.safetensors",
     {.before = kTrain}},
#endif
};

class Inputs : public ::testing::TestWithParam<Input> {
 protected:
  Inputs() {
    write("python", kPython);
    fs::permissions(folder_ / "python", fs::perms::owner_all);
    for (const char* config : {"config.json", "model/config.json", "hub/snapshots/a/config.json"}) {
      write(config, kAnyConfig);
    }
    write("hub/refs/main", "a");
    write("model/tokenizer.json", "{}");
    write("model/model.safetensors", "weights");
    EXPECT_EQ(ended({"convert", "@/config.json", "--as", "gguf", "--out", "@/model.gguf"}).status,
              0);
    write("examined.json", "{}");
    write("plan.json", kPlan);
    write_small_text(folder_ / "text");
    if (GetParam().rest.before.empty()) return;
    const Ended made = ended(GetParam().rest.before);
    EXPECT_EQ(made.status, 0) << made.err;
    fs::copy(folder_ / "out", folder_ / "before", fs::copy_options::recursive);
  }

  // Puts back what the command before had written.
  void restore() const {
    fs::remove_all(folder_ / "out");
    fs::copy(folder_ / "before", folder_ / "out", fs::copy_options::recursive);
  }

  std::string expanded(std::string word) const {
    return word.starts_with("@") ? word.replace(0, 1, folder_.path().string()) : word;
  }
  void write(const std::string& file, const std::string& text) const {
    write_text(folder_ / file, text);
  }
  Ended ended(const std::vector<std::string>& words) const {
    std::vector<std::string> arguments;
    for (const std::string& word : words) arguments.push_back(expanded(word));
    const std::string python = (folder_ / "python").string();
    return run(arguments, [&] {
      ::setenv("SEXTANT_PYTHON", python.c_str(), 1);
#ifndef __SANITIZE_ADDRESS__  // which reserves terabytes
      const rlimit limit{kMemory, kMemory};
      ::setrlimit(RLIMIT_AS, &limit);
#endif
      ::alarm(kSeconds);
    });
  }

  TemporaryFolder folder_;
};

const std::set<std::string> kKinds = {"endless", "pipe", "folder", "loop", "empty"};

void make(const std::string& kind, const fs::path& path) {
  fs::remove_all(path);
  fs::create_directories(path.parent_path());
  if (kind == "endless") fs::create_symlink("/dev/zero", path);
  if (kind == "pipe") ::mkfifo(path.c_str(), 0666);
  if (kind == "folder") fs::create_directory(path);
  if (kind == "loop") fs::create_symlink(path.filename(), path);
  if (kind == "empty") write_text(path, "");
}

INSTANTIATE_TEST_SUITE_P(All, Inputs, ::testing::ValuesIn(kInputs),
                         [](const auto& info) { return info.param.name; });

TEST_P(Inputs, ThatAreNoFilesAreNamed) {
  const Input& input = GetParam();
  for (const std::string& kind : kKinds) {
    make(kind, folder_ / input.file);
    const Ended end = ended(input.words);
    const std::string said = end.out + end.err;
    EXPECT_GE(end.status, 0) << kind << ": ended by signal " << -end.status << "\n" << said;
    for (const char* foreign : {"json.exception", "filesystem error", "std::", "toml::",
                                "basic_string", "vector::", "Traceback", "not enough memory"}) {
      EXPECT_THAT(said, Not(HasSubstr(foreign))) << kind;
    }
    if (!input.rest.needed) {
      if (std::ranges::count(input.rest.before, "--prepare") == 0) continue;
      restore();  // an arm may be done now
      continue;
    }
    if (kind != "empty" || !input.rest.may_be_empty) {
      EXPECT_NE(end.status, 0) << kind << "\n" << said;
    }
    const std::string& named = input.rest.named.empty() ? input.file : input.rest.named;
    if (kind != "empty") {
      EXPECT_THAT(said, HasSubstr((folder_ / named).string())) << kind;
    }
  }
}

TEST(InputsOfCommands, AreAllInTheList) {
  const std::set<std::string> without = {"plot", "methods", "claims"};  // read no file
  std::set<std::string> tested = without;
  for (const Input& input : kInputs) tested.insert(input.words[0]);
  std::istringstream lines(run({"--help"}).out);
  std::set<std::string> known;
  bool commands = false;
  for (std::string line; std::getline(lines, line);) {
    if (commands && line.size() > 2 && line[2] != ' ') {
      known.insert(line.substr(2, line.find(' ', 2) - 2));
    }
    commands = commands || line == "Subcommands:";
    if (line.empty()) commands = false;
  }
  EXPECT_THAT(known, ::testing::IsSupersetOf({"explain", "survey", "retrieve"}));
  EXPECT_EQ(known, tested);
}

}  // namespace
}  // namespace sextant::cli
