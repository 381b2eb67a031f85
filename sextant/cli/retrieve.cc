// sextant retrieve MODEL: plants facts in long prompts and measures whether a checkpoint, or a
// server that runs it, finds them. The tasks are short forms of RULER's (Hsieh et al. 2024); Python
// asks the model (python/sextant/measure).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/commands.h"
#include "sextant/cli/evaluation_options.h"
#include "sextant/cli/many_machines.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/plan/checkpoint.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/retrieval_report.h"
#include "sextant/lab/run/measure.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kShortestPrompt = 256, kDepths = 5;
constexpr std::array<const char*, 5> kTasks = {"needle", "multi-key", "multi-value", "variables",
                                               "common-words"};

struct RetrieveOptions {
  std::string model, endpoint, endpoint_model, method, options = "{}", dtype = "auto", out;
  std::vector<int64_t> lengths = {1024, 2048, 4096};
  std::vector<std::string> tasks = {kTasks.begin(), kTasks.end()};
  int64_t samples = 20, seed = 0;
  std::optional<int64_t> depths;  // else kDepths, or as many as there are samples
  int threads = 0;
  bool chat = false, as_json = false;
  ManyMachines many;
};

[[noreturn]] void refuse(const std::string& where, const std::string& expected,
                         const std::string& got) {
  fail(fmt::format("retrieve: {}: expected {}, but got {}", where, expected, got));
}

void check_lengths(const std::vector<int64_t>& lengths) {
  int64_t before = kShortestPrompt - 1;
  for (const int64_t length : lengths) {
    if (length <= before)
      refuse("--lengths", fmt::format("rising numbers of tokens from {}", kShortestPrompt),
             fmt::format("{}", fmt::join(lengths, ",")));
    before = length;
  }
}

void check_tasks(const std::vector<std::string>& tasks) {
  for (auto task = tasks.begin(); task != tasks.end(); ++task) {
    if (std::ranges::find(kTasks, *task) == kTasks.end())
      refuse("--tasks", fmt::format("some of {}", fmt::join(kTasks, ", ")), *task);
    if (std::find(tasks.begin(), task, *task) != task)
      refuse("--tasks", "each task once", *task + " twice");
  }
}

json method_options(const std::string& text) {
  return checked_json_object(text, "retrieve: --options");
}

void check_tokenizer(const fs::path& folder) {
  const fs::path file = folder / "tokenizer.json";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) refuse(file.string(), "a file", "none");
}

// Letters, digits, dots and dashes of a URL or a name, for the name of a folder.
std::string folder_name(std::string text) {
  text = text.substr(text.find("://") == std::string::npos ? 0 : text.find("://") + 3);
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  while (text.ends_with('-')) text.pop_back();
  return text;
}

fs::path out_folder(const RetrieveOptions& options) {
  if (!options.many.collected.empty()) return options.many.collected;
  if (!options.out.empty()) return options.out;
  std::string name =
      folder_name(options.endpoint_model.empty() ? options.endpoint : options.endpoint_model);
  if (options.endpoint.empty()) name = lab::model_path(options.model).filename().string();
  return fs::path("runs") / ("retrieve-" + name);
}

void check(const RetrieveOptions& options) {
  check_lengths(options.lengths);
  check_tasks(options.tasks);
  if (options.depths > options.samples)
    refuse("--depths", fmt::format("at most the number of samples, {}", options.samples),
           std::to_string(*options.depths));
  if (options.endpoint.empty()) {
    if (options.model.empty()) throw CLI::RequiredError("MODEL or --endpoint");
  } else if (!options.endpoint.starts_with("http://") &&
             !options.endpoint.starts_with("https://")) {
    refuse("--endpoint", "a URL that begins with http:// or https://", options.endpoint);
  }
}

// The manifest has all that decides the records; threads do not.
lab::Measurement measurement_of(const RetrieveOptions& options) {
  check(options);
  json manifest = {
      {"measure", "retrieval"},
      {"model", nullptr},
      {"endpoint", nullptr},
      {"candidate", {{"name", "own"}, {"method", nullptr}, {"options", json::object()}}},
      {"dtype", options.dtype},
      {"retrieval",
       {{"lengths", options.lengths},
        {"tasks", options.tasks},
        {"samples", options.samples},
        {"depths", options.depths.value_or(std::min(kDepths, options.samples))},
        {"seed", options.seed},
        {"chat", options.chat}}}};
  if (!options.method.empty())
    manifest["candidate"] = {{"name", options.method},
                             {"method", options.method},
                             {"options", method_options(options.options)}};
  if (options.endpoint.empty()) {
    // Its errors would otherwise come only after Python has started.
    const lab::Checkpoint checkpoint = lab::read_checkpoint("retrieve", options.model);
    manifest["model"] = checkpoint.path.string();
    manifest["files"] = checkpoint.files;
    if (checkpoint.train_length > 0) manifest["trained_length"] = checkpoint.train_length;
  } else {
    manifest["endpoint"] = {{"url", options.endpoint}, {"model", nullptr}};
    if (!options.endpoint_model.empty()) manifest["endpoint"]["model"] = options.endpoint_model;
    if (!options.model.empty()) {
      check_tokenizer(options.model);
      manifest["model"] = lab::model_path(options.model).string();
    }
  }
  json assignment = manifest;
  assignment.erase("trained_length");
  assignment.erase("files");
  assignment["threads"] = threads_or_cores(options.threads);
  lab::Measurement measurement{.command = "retrieve",
                               .folder = out_folder(options),
                               .manifest = manifest,
                               .hand_out = hand_out_of(options.many)};
  for (const int64_t length : options.lengths) {
    assignment["retrieval"]["lengths"] = {length};
    measurement.arms.push_back({.name = std::to_string(length), .assignment = assignment});
  }
  return measurement;
}

std::vector<lab::RetrievalSample> all_samples(const RetrieveOptions& options,
                                              const lab::Measurement& measurement) {
  const int64_t count = options.samples * static_cast<int64_t>(options.tasks.size());
  std::vector<lab::RetrievalSample> all;
  std::set<std::tuple<std::string, int64_t, int64_t>> prompts;  // some are asked again
  for (const lab::MeasuredArm& arm : measurement.arms) {
    lab::for_each_record(measurement, arm, count, [&](const JsonFields& record) {
      const lab::RetrievalSample& sample = all.emplace_back(lab::retrieval_sample(record));
      return prompts.emplace(sample.task, sample.length, sample.sample).second;
    });
  }
  return all;
}

void retrieve(const RetrieveOptions& options, const std::string& command_line) {
  const lab::Measurement measurement = measurement_of(options);
  check_can_write(measurement.folder);
  const lab::MeasureEnd end = lab::run_measurement(measurement);
  if (end != lab::MeasureEnd::kDone) end_without_result(end, measurement.folder);
  const lab::RetrievalScores scores = lab::retrieval_scores(all_samples(options, measurement));
  const json facts = lab::facts_of(measurement, measurement.arms.front()).all;
  const fs::path page = measurement.folder / "report.html";
  chart::write_report(lab::report_page(scores, measurement.manifest, facts, command_line), page);
  const std::string text = lab::json_text(scores, measurement.manifest, facts, command_line);
  write_file(measurement.folder / lab::kResultsFile, text);
  if (options.as_json) {
    lab::print_text(text);
  } else {
    lab::print_text(lab::table(scores));
    lab::print("\n{}\n", page.string());
  }
}

void declare_tasks(CLI::App& command, RetrieveOptions& options) {
  command.add_option("--lengths", options.lengths, "Lengths of the prompts in tokens, rising")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command.add_option("--tasks", options.tasks, fmt::format("Some of {}", fmt::join(kTasks, ", ")))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("all");
  command.add_option("--samples", options.samples, "Prompts per task and length")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20))
      ->capture_default_str();
  command.add_option("--depths", options.depths, "Places of the facts, from the start to the end")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->default_str(fmt::format("{}, or --samples if fewer", kDepths));
  command.add_option("--seed", options.seed, "Seed of the prompts")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_flag("--chat", options.chat, "Ask with the model's chat template");
}

void declare_model(CLI::App& command, RetrieveOptions& options) {
  command.add_option("MODEL", options.model,
                     "Folder with config.json and tokenizer.json, or a GGUF file; with --endpoint, "
                     "if at all: a folder with tokenizer.json");
  CLI::Option* endpoint =
      command
          .add_option("--endpoint", options.endpoint,
                      "Ask a server with OpenAI's API (llama.cpp, vLLM) instead of a file")
          ->type_name("URL");
  command.add_option("--endpoint-model", options.endpoint_model, "The model's name there")
      ->type_name("NAME")
      ->needs(endpoint);
  CLI::Option* method = command
                            .add_option("--method", options.method,
                                        "Measure the model with other positions: a method of "
                                        "sextant.transformers.stretch (else its own)")
                            ->type_name("NAME")
                            ->excludes(endpoint);
  command.add_option("--options", options.options, "With --method: its options")
      ->type_name("JSON")
      ->needs(method);
  command.add_option("--dtype", options.dtype, "Number format of the weights")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}))
      ->capture_default_str()
      ->excludes(endpoint);
  command.add_option("--threads", options.threads, "Threads (else as many as cores)")
      ->check(CLI::PositiveNumber)
      ->excludes(endpoint);
}

}  // namespace

void add_retrieve(CLI::App& app, const std::string& command_line) {
  CLI::App* command = app.add_subcommand(
      "retrieve", "Does a model find facts in long prompts? RULER's tasks in short form");
  auto options = std::make_shared<RetrieveOptions>();
  declare_model(*command, *options);
  declare_tasks(*command, *options);
  command
      ->add_option("--out", options->out,
                   "Folder for records and report.html (else runs/retrieve-NAME); again: goes on")
      ->type_name("DIR");
  command->add_flag("--json", options->as_json, "Everything, for programs");
  declare_many_machines(*command, options->many, /*has_jobs=*/false);
  command->callback([options, command_line] { retrieve(*options, command_line); });
}

}  // namespace sextant::cli
