// A training of one's own is a survey of one arm in a folder beside the model: prepared, run, and
// then published, file by file with config.json last.
#include "sextant/lab/run/train_model.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/manifest.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/plan/settings_file.h"
#include "sextant/lab/result/model_work.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/arm_process.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/schedule.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kArmName = "model";
constexpr const char* kSettings[] = {"model", "training", "test", "threads"};

// The files of a finished arm that make up a model. The configuration is last, so a folder that
// contains it is complete.
constexpr const char* kModelFiles[] = {"model.safetensors", "tokenizer.json",
                                       "tokenizer_config.json", "config.json"};

// Overrides fields of `base` by those of `given`, recursively. Throws Error for a field that `base`
// lacks.
void lay_over(json& base, const json& given, const std::string& what) {
  if (!given.is_object())
    fail(what + ": expected an object, but got " + given.dump().substr(0, 60));
  for (const auto& [name, value] : given.items()) {
    if (!base.contains(name)) {
      std::string known;
      for (const auto& item : base.items()) known += (known.empty() ? "" : ", ") + item.key();
      fail(fmt::format("{}: {}: expected one of {}", what, name, known));
    }
    json& there = base[name];
    if (there.is_object() && name != "options") {
      lay_over(there, value, fmt::format("{}: {}", what, name));
    } else {
      there = value;
    }
  }
}

// Sets the sizes that are null from the sizes that they follow.
void complete(json& plan) {
  json &model = plan["model"], &test = plan["test"];
  const json length = plan.at("training").at("length");
  if (model.at("key_heads").is_null()) model["key_heads"] = model.at("heads");
  if (model.at("mlp_width").is_null() && model.at("width").is_number_integer())
    model["mlp_width"] = 4 * model.at("width").get<int64_t>();
  if (test.at("lengths").is_null()) test["lengths"] = json::array({length});
  if (test.at("bin").is_null()) test["bin"] = length;
}

json manifest_of(const TrainingPlan& plan, const Corpus& corpus) {
  return {{"sextant", version()},
          {"settings", plan.settings},
          {"arm", plan.arm},
          {"text", identity(corpus)}};
}

// The content of arm.json.
json arm_file(const TrainingPlan& plan, const json& manifest) {
  json files = json::array();
  for (const fs::path& path : plan.text) files.push_back(fs::absolute(path).string());
  return {{"arm", plan.arm},
          {"settings", manifest.at("settings")},
          {"text", manifest.at("text")},
          {"files", files}};
}

void prepare(const TrainModelOptions& options, const fs::path& work, const json& manifest) {
  if (!fs::exists(work / kManifestFile)) write_json(work / kManifestFile, manifest);
  write_json(arm_directory(work, options.plan.arm) / kArmFile, arm_file(options.plan, manifest));
}

void check_ranks(const TrainingPlan& plan, int64_t ranks) {
  check_rows(plan.settings.training.batch, ranks);
  if (ranks > 1 && plan.settings.device != kCpu)
    fail(fmt::format("training: device: expected cpu for {} processes, but got {}", ranks,
                     plan.settings.device));
  if (ranks > 1 && is_own_method(plan.arm.method))
    fail(fmt::format("training: method: expected one of Sextant's own for {} processes, but got {}",
                     ranks, plan.arm.method));
}

std::string to_go_on(const TrainModelOptions& options, int64_t ranks,
                     const std::string& when = "") {
  const std::string all =
      ranks > 1 ? fmt::format(", start all {} processes again, each with", ranks) : "";
  return fmt::format("To go on{}{}:\n  {}", when, all, options.command);
}

// The part of a rank above 0 in a training.
TrainEnd join(const TrainModelOptions& options, const json& manifest, int64_t ranks) {
  const TrainingPlan& plan = options.plan;
  const int status = run_arm_process({.has_parent = false}, [&](const Watch& watch) {
    const Plugin& plugin = open_plugin(plan.settings.threads);
    return status_of(plugin.join_training(arm_file(plan, manifest).dump(), watch));
  });
  if (status == kStoppedStatus) return TrainEnd::kStopped;
  if (status == 0) return TrainEnd::kDone;
  note(to_go_on(options, ranks));
  return TrainEnd::kFailed;
}

// Runs the arm, on rank 0 of the training. Returns kDone if it has a result.
TrainEnd run(const TrainModelOptions& options, const fs::path& work, int64_t ranks) {
  std::vector<std::string> worker = options.worker;
  if (ranks > 1) worker.emplace_back("--grouped");
  const std::vector<Arm> arms{options.plan.arm};
  const ScheduleEnd end =
      run_arms(scheduled(work, options.plan.settings, arms), {.worker = worker, .jobs = 1});
  if (!end.cannot_write.empty()) {
    note(fmt::format("\n{}\nstopped. {}", end.cannot_write,
                     to_go_on(options, ranks, ", when it can be written")));
    return TrainEnd::kFailed;
  }
  if (end.stopped || end.arm_stopped) {
    note(fmt::format("\nstopped. {}", to_go_on(options, ranks)));
    return TrainEnd::kStopped;
  }
  for (const std::string& failure : end.failures) note("failed: " + failure);
  for (const std::string& busy : end.busy) note("failed: " + busy);
  if (end.failures.empty() && end.busy.empty()) return TrainEnd::kDone;
  if (ranks > 1) note(to_go_on(options, ranks));
  return TrainEnd::kFailed;
}

// Moves the model to the user's directory. It can run again after a kill in between.
void publish(const fs::path& arm, const fs::path& directory) {
  for (const char* file : kModelFiles)
    if (fs::exists(arm / file)) fs::rename(arm / file, directory / file);
}

// Suggests commands that test the model on its held-out text.
std::string next_steps(const TrainModelOptions& options, const Corpus& corpus) {
  const TrainingPlan& plan = options.plan;
  const int64_t trained = plan.settings.training.length;
  int64_t longest = trained;
  std::string lengths = std::to_string(trained);
  for (const int64_t times : {2, 4, 8}) {
    if (count_test_blocks(corpus, times * trained) < kFewestBlocks) break;
    longest = times * trained;
    lengths += fmt::format(",{}", longest);
  }
  if (longest == trained)
    return fmt::format(
        "\nThe text held out has no {} pieces of {} bytes: to read longer texts with it, give "
        "sextant evaluate others by --text.\n",
        kFewestBlocks, 2 * trained);
  std::string text;
  if (options.own_text) {
    text = " --text";
    for (const fs::path& path : plan.text) text += fmt::format(" {}", shell_word(path.string()));
  }
  if (!text.empty() || plan.settings.test.share != TestOptions().share)
    text += fmt::format(" --share {}", plan.settings.test.share);
  const std::string model = shell_word(options.directory.string());
  std::string words =
      fmt::format("\nNow read longer texts with it:\n  sextant evaluate {} --lengths {}{}\n", model,
                  lengths, text);
  // Trained frequencies are not stretched: see evaluate_model.h.
  if (plan.arm.method == "rope" &&
      json::parse(plan.arm.options).value("train", json(false)) != true) {
    words += fmt::format("  sextant extend {} --length {}{}\n", model, longest, text);
  }
  return words;
}

TrainEnd say_result(const TrainModelOptions& options, const ArmResult& result,
                    const Corpus& corpus) {
  const fs::path& directory = options.directory;
  if (result.diverged) {
    note(
        fmt::format("failed: the training diverged: {}. A smaller training.learning_rate may help, "
                    "in another directory.",
                    result.message));
    return TrainEnd::kFailed;
  }
  print("{}: {}, {} weights, trained on texts of {} bytes for {} steps\n\n", directory.string(),
        result.arm.method, result.weights, options.plan.settings.training.length,
        options.plan.settings.training.steps());
  print("On text held out, in pieces of each length:\n");
  print("{:>8}{:>16}{:>22}\n", "length", "nats per byte", "perplexity of bytes");
  for (const AtLength& at : result.lengths)
    print("{:>8}{:>16.3f}{:>22.3f}\n", at.length, at.loss.value, std::exp(at.loss.value));
  const fs::path config = directory / kConfigFile;
  const auto architecture = naming_file(
      config, [&] { return read_json(config).at("architectures").at(0).get<std::string>(); });
  if (architecture == "SextantDecoder") {
    print("\nSextant's own form: transformers has no architecture that computes this ({}).\n",
          open_plugin(options.plan.settings.threads).obstacle(directory));
  } else {
    print("\ntransformers loads it as {}.\n", architecture);
  }
  print_text(next_steps(options, corpus));
  return TrainEnd::kDone;
}

json default_plan() {
  Settings settings;
  json plan = {{"method", "rope"},          {"options", json::object()},
               {"seed", uint64_t{0}},       {"memory", 0},
               {"device", settings.device}, {"objective", name(Objective::kCausal)},
               {"text", json::array()}};
  const json all = settings;
  for (const char* part : kSettings) plan[part] = all.at(part);
  for (const char* follows : {"key_heads", "mlp_width"}) plan["model"][follows] = nullptr;
  for (const char* follows : {"lengths", "bin"}) plan["test"][follows] = nullptr;
  return plan;
}

}  // namespace

std::string example_plan() { return default_plan().dump(2) + "\n"; }

TrainingPlan read_plan(const fs::path& file) {
  const std::string what = file.string();
  json plan = default_plan();
  lay_over(plan, read_settings_file(file), what);
  complete(plan);
  TrainingPlan read;
  read.arm.label = kArmName;
  JsonFields fields(plan, what);
  fields.read("method", read.arm.method);
  if (!fields.at("options").is_object()) fail(what + ": options: expected an object");
  read.arm.options = plan.at("options").dump();
  fields.read("seed", read.arm.seed);
  fields.read("memory", read.arm.memory);
  const json& text = fields.at("text");
  if (!text.is_array()) fail(what + ": text: expected a list of files, but got " + text.dump());
  for (const json& path : text) {
    if (!path.is_string()) fail(what + ": text: expected names of files, but got " + path.dump());
    read.text.emplace_back(path.get<std::string>());
  }
  std::string objective;
  fields.read("objective", objective);
  json settings = Settings{};
  settings["objective"] = objective;
  settings["device"] = fields.at("device");
  for (const char* part : kSettings) settings[part] = fields.at(part);
  fields.finish();
  try {
    read.settings = settings.get<Settings>();
  } catch (const Error& error) {
    fail(what + ": " + error.what());
  }
  read.arm.task = text_task(read.settings);
  if (read.arm.task == Task::kMasked && read.arm.memory > 0)
    fail(
        fmt::format("{}: memory: expected 0 with masked bytes, but got {}", what, read.arm.memory));
  return read;
}

TrainEnd train_model(const TrainModelOptions& options) {
  const TrainingPlan& plan = options.plan;
  const LaunchedRank own = training_rank();
  check_ranks(plan, own.size);
  const fs::path work = options.directory / "training";
  const Corpus corpus = read_corpus(plan.text, plan.settings.test.share);
  test_blocks(corpus, plan.settings.test.longest(), plan.settings.test.blocks);
  train_window(corpus, plan.settings.training.length, 0, 1, 0, 0);
  const json manifest = manifest_of(plan, corpus);
  check_manifest("training", "--out", work, manifest);
  if (!is_done(work, plan.arm)) {
    if (fs::exists(options.directory / kConfigFile))
      fail("training: " + options.directory.string() +
           " holds a model; choose another --out, or remove it");
    const Plugin& plugin = open_plugin(plan.settings.threads);
    plugin.check_device(plan.settings.device);
    plugin.check(plan.settings, std::vector<Arm>{plan.arm});
    if (own.rank > 0) return join(options, manifest, own.size);
  }
  if (own.rank > 0) return TrainEnd::kDone;
  const DirectoryLock lock("training", work);
  if (!is_done(work, plan.arm)) {
    prepare(options, work, manifest);
    const TrainEnd end = run(options, work, own.size);
    if (end != TrainEnd::kDone) return end;
  }
  publish(arm_directory(work, plan.arm), options.directory);
  const fs::path result = arm_directory(work, plan.arm) / kResultFile;
  return say_result(options, read_result(result), corpus);
}

LaunchedRank training_rank() {
  const bool by_torchrun = environment_value("RANK") || environment_value("WORLD_SIZE");
  const std::optional<std::string> tasks = environment_value("SLURM_STEP_NUM_TASKS");
  if (!by_torchrun && (!tasks || *tasks == "1")) return {};
  return launched_rank();
}

void check_rows(int64_t batch, int64_t ranks) {
  if (batch % ranks != 0)
    fail(fmt::format(
        "training: batch: expected a multiple of {}, the number of processes, but got {}", ranks,
        batch));
}

}  // namespace sextant::lab
