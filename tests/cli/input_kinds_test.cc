// What each command says to inputs that are no files: an endless one, a named pipe without a
// writer, a folder, a loop of links, and an empty file. It ends with a message that names the input
// and has no words of a library, within a limit of memory that reading without bounds exceeds.
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
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr rlim_t kMemory = rlim_t{4} << 30;
constexpr unsigned kSeconds = 60;  // a guard: no command waits

// Answers `-c` with success. As the worker, it makes the records of one arm.
constexpr const char* kStandIn = R"(#!/usr/bin/env python3
import json, pathlib, sys
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

constexpr const char* kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000,
    "max_position_embeddings": 512, "rope_theta": 10000.0})";
constexpr const char* kPlan = R"({"model": {"layers": 1, "width": 32, "heads": 2},
    "training": {"length": 32, "bytes": 25600}, "test": {"blocks": 8, "share": 0.2}})";

// An input of a command. In `words` and paths, @ stands for the folder of the test.
struct Input {
  std::string name;
  std::vector<std::string> words;
  std::string file;                      // replaced by what is no file
  bool needed = true;                    // otherwise the command may do without it
  std::string named = file;              // the path in the message
  std::vector<std::string> before = {};  // a command that writes what is read
};

const std::vector<std::string> kEvaluate = {"evaluate", "@/model",  "--lengths", "512",   "--text",
                                            "@/text",   "--blocks", "3",         "--out", "@/out"};
const std::vector<std::string> kExtend = {"extend", "@/model",  "--to", "1024",  "--text",
                                          "@/text", "--blocks", "3",    "--out", "@/out"};
const std::vector<std::string> kRetrieve = {"retrieve", "@/model", "--lengths", "512",
                                            "--tasks",  "needle",  "--samples", "2",
                                            "--depths", "2",       "--out",     "@/out"};
const std::vector<std::string> kAsk = {"retrieve",           "@/model", "--endpoint",
                                       "http://127.0.0.1:9", "--out",   "@/out"};
const std::vector<std::string> kSurvey = {
    "survey", "--smoke",           "--text", "@/text",    "--share", "0.2", "--out",
    "@/out",  "--retrieval-steps", "0",      "--methods", "rope"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<Input> inputs() {
  const std::vector<std::string> prepare = with(kEvaluate, {"--prepare"});
  std::vector<Input> all = {
      {"explain", {"explain", "@/config.json"}, "config.json"},
      {"explain_gguf", {"explain", "@/model.gguf"}, "model.gguf"},
      {"explain_folder", {"explain", "@/model"}, "model/config.json", true, "model"},
      {"explain_revision", {"explain", "@/hub"}, "hub/refs/main", false},
      {"convert", {"convert", "@/config.json", "--to", "hf5"}, "config.json"},
      {"doctor_first", {"doctor", "@/config.json", "@/model.gguf"}, "config.json"},
      {"doctor_second", {"doctor", "@/config.json", "@/model.gguf"}, "model.gguf"},
      {"doctor_gguf", {"doctor", "@/model.gguf"}, "model.gguf"},
      {"survey_arms_json", {"survey", "--arms", "@/arms.json", "--dry-run"}, "arms.json"},
      {"survey_arms_toml", {"survey", "--arms", "@/arms.toml", "--dry-run"}, "arms.toml"},
      {"survey_text", {"survey", "--text", "@/text/0.txt", "--dry-run"}, "text/0.txt"},
      {"survey_methods", {"survey", "--methods", "@/own.py:Own", "--dry-run"}, "own.py"},
      {"survey_manifest", kSurvey, "out/manifest.json"},
      {"survey_collect", {"survey", "--collect", "@/out"}, "out/command.json"},
      {"train_json", {"train", "@/plan.json", "--to", "@/out"}, "plan.json"},
      {"train_toml", {"train", "@/plan.toml", "--to", "@/out"}, "plan.toml"},
      {"train_text",
       {"train", "@/plan.json", "--to", "@/out", "--text", "@/text/0.txt"},
       "text/0.txt"},
      {"train_manifest",
       {"train", "@/plan.json", "--to", "@/out", "--text", "@/text"},
       "out/training/manifest.json"},
      {"arm",
       {"arm", "@/out/arms/direct"},
       "out/arms/direct/arm.json",
       true,
       "out/arms/direct",
       prepare},
      {"arm_lock", {"arm", "@/out/arms/direct"}, "out/arms/direct/lock", false, "", prepare},
      {"arm_stop", {"arm", "@/out/arms/direct"}, "out/arms/direct/stop", false, "", prepare},
      {"arm_progress",
       {"arm", "@/out/arms/direct"},
       "out/arms/direct/progress",
       false,
       "",
       prepare},
      {"evaluate_collect",
       {"evaluate", "--collect", "@/out"},
       "out/command.json",
       true,
       "out",
       prepare},
      {"evaluate_config", kEvaluate, "model/config.json", true, "model"},
      {"evaluate_gguf", {"evaluate", "@/model.gguf", "--lengths", "512"}, "model.gguf"},
      {"evaluate_tokenizer", kEvaluate, "model/tokenizer.json"},
      {"evaluate_weights", kEvaluate, "model/model.safetensors", true, "model"},
      {"evaluate_index", kEvaluate, "model/model.safetensors.index.json"},
      {"evaluate_text", with(kEvaluate, {"--text", "@/one.txt"}), "one.txt"},
      {"evaluate_manifest", kEvaluate, "out/manifest.json"},
      {"evaluate_records", kEvaluate, "out/arms/direct/records.jsonl", true,
       "out/arms/direct/records.jsonl", kEvaluate},
      {"evaluate_facts", kEvaluate, "out/arms/direct/done.json", true, "out/arms/direct/done.json",
       kEvaluate},
      {"extend_config", kExtend, "model/config.json", true, "model"},
      {"extend_text", with(kExtend, {"--text", "@/one.txt"}), "one.txt"},
      {"extend_records", kExtend, "out/arms/pi/records.jsonl", true, "out/arms/pi/records.jsonl",
       kExtend},
      {"retrieve_config", kRetrieve, "model/config.json", true, "model"},
      {"retrieve_tokenizer", kRetrieve, "model/tokenizer.json"},
      {"retrieve_endpoint", kAsk, "model/tokenizer.json"},
      {"retrieve_records", kRetrieve, "out/arms/512/records.jsonl", true,
       "out/arms/512/records.jsonl", kRetrieve},
  };
#ifdef SEXTANT_HAS_LABORATORY
  const std::vector<std::string> train = {"train", "@/plan.json", "--to",
                                          "@/out", "--text",      "@/text"};
  const std::vector<std::string> evaluate = {"evaluate", "@/out",  "--lengths", "32",
                                             "--text",   "@/text", "--blocks",  "3"};
  const std::vector<Input> of_laboratory = {
      {"survey_result", kSurvey, "out/arms/rope-0/result.json", true, "out/arms/rope-0/result.json",
       kSurvey},
      {"survey_results", kSurvey, "out/results.json", false, "", kSurvey},
      {"arm_of_survey",
       {"arm", "@/out/arms/rope-0"},
       "out/arms/rope-0/arm.json",
       true,
       "out/arms/rope-0",
       with(kSurvey, {"--prepare"})},
      {"arm_state",
       {"arm", "@/out/arms/rope-0"},
       "out/arms/rope-0/checkpoint-00000001.sxt",
       false,
       "",
       with(kSurvey, {"--prepare"})},
      {"train_result", train, "out/training/arms/model/result.json", true,
       "out/training/arms/model/result.json", train},
      {"evaluate_bytes_config", evaluate, "out/config.json", true, "out", train},
      {"evaluate_bytes_weights", evaluate, "out/model.safetensors", true, "out/model.safetensors",
       train},
      {"extend_bytes_weights",
       {"extend", "@/out", "--to", "64", "--text", "@/text", "--blocks", "3"},
       "out/model.safetensors",
       true,
       "out/model.safetensors",
       train},
  };
  all.insert(all.end(), of_laboratory.begin(), of_laboratory.end());
#endif
  return all;
}

class Inputs : public testing::TestWithParam<Input> {
 protected:
  Inputs() {
    write("python", kStandIn);
    fs::permissions(folder_ / "python", fs::perms::owner_all);
    for (const char* config : {"config.json", "model/config.json", "hub/snapshots/a/config.json"}) {
      write(config, kConfig);
    }
    write("hub/refs/main", "a");
    write("model/tokenizer.json", "{}");
    write("model/model.safetensors", "weights");
    EXPECT_EQ(ended({"convert", "@/config.json", "--to", "gguf", "--out", "@/model.gguf"}).status,
              0);
    write("plan.json", kPlan);
    write_small_text(folder_ / "text");
    if (GetParam().before.empty()) return;
    const Ended made = ended(GetParam().before);
    EXPECT_EQ(made.status, 0) << made.err;
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
  if (kind == "pipe") ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  if (kind == "folder") fs::create_directory(path);
  if (kind == "loop") fs::create_symlink(path.filename(), path);
  if (kind == "empty") write_text(path, "");
}

INSTANTIATE_TEST_SUITE_P(All, Inputs, testing::ValuesIn(inputs()),
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
    if (!input.needed) continue;
    EXPECT_NE(end.status, 0) << kind << "\n" << said;
    if (kind != "empty") EXPECT_THAT(said, HasSubstr((folder_ / input.named).string())) << kind;
  }
}

TEST(InputsOfCommands, AreAllInTheList) {
  const std::set<std::string> without = {"plot", "methods", "claims"};  // read no file
  std::set<std::string> tested = without;
  for (const Input& input : inputs()) tested.insert(input.words[0]);
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
  EXPECT_THAT(known, testing::IsSupersetOf({"explain", "survey", "retrieve"}));
  EXPECT_EQ(known, tested);
}

}  // namespace
}  // namespace sextant::cli
