// sextant survey: trains a small transformer with each position encoding on short text and tests it
// on long text. See sextant/lab/survey/survey.h.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <variant>
#include <vector>

#include "sextant/cli/commands.h"
#include "sextant/cli/many_machines.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/plan/settings_file.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/survey/survey.h"

namespace sextant::cli {
namespace {

struct Options {
  lab::Settings settings;
  std::vector<std::string> methods;  // empty: lab::default_methods()
  std::string task = "causal";
  std::vector<std::string> text;
  std::string norm = "layernorm", activation = "relu2";
  std::string arms_file;
  std::string claims;  // "open" or "all": the arms of these claims
  int64_t seeds = 1;
  lab::ArmDefaults all;
  std::vector<int64_t> drop_channels;
  int jobs = 1;
  double save_seconds = lab::Watch().seconds_between_checkpoints;
  std::string directory = "runs/survey";
  bool smoke = false, dry_run = false, list = false;
  ManyMachines many;
};

void declare_what(CLI::App& command, Options& options) {
  command.option_defaults()->group("What is compared");
  command
      .add_option("--methods", options.methods,
                  "Methods, with options as rope:base=1e6:dim=16; FILE.py:CLASS: an encoding of "
                  "one's own in Python; `all`: every method; `stretches`: every stretch of a "
                  "trained rope (default: see --list)")
      ->delimiter(',');
  command
      .add_option("--task", options.task,
                  "causal: the next byte, and retrieval; masked: masked bytes with attention in "
                  "both directions (BERT), and the direction task")
      ->check(CLI::IsMember({"causal", "masked"}))
      ->capture_default_str();
  command
      .add_option("--arms", options.arms_file,
                  "A file in JSON or TOML: {\"arms\": [methods as above, or {\"label\", "
                  "\"method\", \"options\"}], \"settings\": {...}}")
      ->excludes("--methods");
  command
      .add_option("--claims", options.claims,
                  "The arms that claims of the literature need: `open`, those of the open "
                  "questions, or `all` (see sextant claims)")
      ->check(CLI::IsMember({"open", "all"}))
      ->excludes("--methods")
      ->excludes("--arms");
  command
      .add_option("--tune", options.all.tune,
                  "Steps by which each stretch of a trained rope is also trained on, at the "
                  "longest length; 0: none")
      ->capture_default_str();
  command
      .add_option("--drop-channels", options.drop_channels,
                  "Also test each encoding that adds a vector to the input with this many of its "
                  "channels set to zero; several: 1,4,16")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command.add_flag("--list", options.list, "Say what there is to compare, and end");
  command.add_option("--seeds", options.seeds, "Trainings of each, from seeds 0, 1, ...")
      ->capture_default_str();
  command.add_option("--text", options.text,
                     "Files and folders of text (else the sources of Debian's python3-doc)");
}

// The settings of one part of the table.
void declare_settings(CLI::App& command, lab::Settings& settings, std::string_view part) {
  for (const lab::Setting& row : lab::settings_table(settings)) {
    if (row.part != part || row.help == nullptr) continue;
    const auto add = [&](auto* value) {
      CLI::Option* option = command.add_option(row.option(), *value, row.help);
      if (std::is_same_v<decltype(value), std::vector<int64_t>*>) option->delimiter(',');
      if (row.follow == nullptr) option->capture_default_str();
    };
    std::visit(add, row.member);
  }
}

void declare_model(CLI::App& command, Options& options) {
  command.option_defaults()->group("Model");
  declare_settings(command, options.settings, "model");
  const auto add = [&](const char* name, auto& value, const char* what) {
    command.add_option(name, value, what)->capture_default_str();
  };
  add("--memory", options.all.memory,
      "Positions remembered of the segments before (Transformer-XL); of one: t5:memory=128");
  add("--norm", options.norm, "layernorm or rmsnorm");
  add("--activation", options.activation, "gelu, relu2 or swiglu");
}

void declare_run(CLI::App& command, Options& options) {
  command.option_defaults()->group("Running");
  command.add_option("--out", options.directory, "Where the survey lives; again: goes on there")
      ->capture_default_str();
  command
      .add_option("--jobs", options.jobs,
                  "Trainings at a time (else the cores divided by --threads, at least 1)")
      ->check(CLI::PositiveNumber);
  declare_settings(command, options.settings, "");
  command
      .add_option("--save-seconds", options.save_seconds,
                  "Seconds between checkpoints: what a kill can cost; 0: save after every step")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--smoke", options.smoke, "Everything tiny, in seconds: does it work here?");
  command.add_flag("--dry-run", options.dry_run, "Say what would be done");
  declare_many_machines(command, options.many, /*has_jobs=*/true);
}

// Derives the values of options that were not given from the other options.
void complete(Options& options, const CLI::App& command) {
  lab::Settings& settings = options.settings;
  settings.objective = lab::objective_named(options.task);
  if (options.methods.empty()) options.methods = lab::default_methods(settings.objective);
  const auto is_given = [&](const std::string& option) { return command.count(option) > 0; };
  const std::vector<lab::Setting> table = lab::settings_table(settings);
  if (options.smoke) {
    if (!is_given("--out")) options.directory = "runs/smoke";
    for (const lab::Setting& row : table)
      if (row.smoke && !is_given(row.option())) *std::get<int64_t*>(row.member) = *row.smoke;
  }
  for (const lab::Setting& row : table)
    if (row.follow != nullptr && !is_given(row.option())) row.follow(settings);
  settings.model.norm = norm(options.norm);
  settings.model.activation = activation(options.activation);
}

// The methods for text.
std::vector<std::string> names_of(std::span<const lab::KnownMethod> known) {
  std::vector<std::string> names;
  for (const lab::KnownMethod& method : known)
    if (method.grid_option.empty()) names.push_back(method.name);
  return names;
}

std::vector<lab::ArmRequest> requests_of_claims(const std::string& claims,
                                                const lab::Settings& settings) {
  std::vector<lab::ArmRequest> requests;
  for (const std::string& arm : lab::arms_of_claims(claims == "open", settings))
    requests.push_back(lab::request_of(arm));
  return requests;
}

// Parses methods, with `all` and `stretches` replaced by the names they stand for.
std::vector<lab::ArmRequest> in_full(const std::vector<std::string>& words, int threads) {
  std::vector<lab::ArmRequest> requests;
  for (const std::string& word : words) {
    std::vector<std::string> meant{word};
    if (word == "all") meant = names_of(lab::open_plugin(threads).methods());
    if (word == "stretches") meant = lab::stretches();
    for (const std::string& method : meant) requests.push_back(lab::request_of(method));
  }
  return requests;
}

void print_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) lab::print(" {}", name);
}

int list(int threads) {
  lab::print("Methods, with their options and defaults:\n");
  for (const lab::KnownMethod& method : lab::open_plugin(threads).methods())
    lab::print("  {:<16}{}\n  {:<16}{}\n", method.name, method.summary, "", method.options);
  lab::print(
      "\nStretches of a trained rope past its length, by the longest length tested over L.\n ");
  print_names(lab::stretches());
  lab::print(
      "\n\nOptions of every method: weights=rope (use the weights that rope trained), weights=own, "
      "memory=128,\ntune=60 (train those weights further), drop_channels=4 (test without channels "
      "of the\nadded vector). A value such as L or L/2 follows the training length.\nWords for "
      "several: all, stretches. Without --methods:\n ");
  print_names(lab::default_methods(lab::Objective::kCausal));
  lab::print("\nWith --task masked (where causal=true hides later positions):\n ");
  print_names(lab::default_methods(lab::Objective::kMasked));
  lab::print("\n");
  return 0;
}

// Makes the arms, with those of --drop-channels. If no method adds to the input, the check of such
// an arm throws the Error that names the methods which do.
std::vector<lab::Arm> arms_of(const std::vector<lab::ArmRequest>& requests,
                              const Options& options) {
  const lab::Settings& settings = options.settings;
  const std::vector<lab::Arm> arms = lab::make_arms(requests, options.seeds, settings, options.all);
  if (options.drop_channels.empty()) return arms;
  lab::check(settings);
  const lab::Plugin& plugin = lab::open_plugin(settings.threads);
  bool any = false;
  const auto added = [&](const lab::Arm& arm) {
    const int64_t channels = plugin.added_channels(settings, arm);
    any = any || channels > 0;
    return channels;
  };
  std::vector<lab::Arm> all = lab::with_dropped_arms(arms, options.drop_channels, added);
  if (!any) {
    lab::Arm probe = arms.front();
    probe.drop_channels = options.drop_channels.front();
    plugin.check(settings, std::span(&probe, 1));
  }
  return all;
}

// The trainings that this machine is given at a time: one on a GPU, else as many as it has cores
// for.
int jobs_at_once(const lab::Settings& settings) {
  if (settings.device != lab::kCpu) return 1;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / std::max(1, settings.threads));
}

int survey(Options options, const CLI::App& command, const std::string& command_line) {
  if (options.list) return list(options.settings.threads);
  complete(options, command);
  lab::Settings& settings = options.settings;
  std::vector<lab::ArmRequest> requests;
  if (!options.claims.empty()) {
    requests = requests_of_claims(options.claims, settings);
  } else if (options.arms_file.empty()) {
    requests = in_full(options.methods, settings.threads);
  } else {
    const lab::ArmsFile file = lab::read_arms_file(options.arms_file);
    requests = file.arms;
    settings = lab::laid_over(settings, file.settings, options.arms_file);
  }
  if (command.count("--jobs") == 0) options.jobs = jobs_at_once(settings);
  lab::SurveyOptions survey{
      .settings = settings,
      .arms = arms_of(requests, options),
      .text = {options.text.begin(), options.text.end()},
      .directory = options.directory,
      .worker = {"/proc/self/exe", "arm", "--threads", std::to_string(settings.threads),
                 "--save-seconds", std::to_string(options.save_seconds)},
      .command = command_line,
      .jobs = options.jobs,
      .dry_run = options.dry_run,
      .hand_out = hand_out_of(options.many)};
  if (!options.many.collected.empty()) survey.directory = options.many.collected;
  if (survey.text.empty()) survey.text = lab::default_text();
  const lab::SurveyEnd end = lab::run_survey(survey);
  if (end == lab::SurveyEnd::kStopped) return lab::interrupted_status();
  if (end == lab::SurveyEnd::kIncomplete) return kIncomplete;
  if (end == lab::SurveyEnd::kSomeFailed) return 1;
  if (options.many.prepare && !options.dry_run) remember_command(survey.directory);
  return 0;
}

}  // namespace

void add_survey(CLI::App& app, const std::string& command_line) {
  CLI::App* command = app.add_subcommand(
      "survey",
      "Train a small transformer with each position encoding on short text, test it on long text");
  auto options = std::make_shared<Options>();
  declare_what(*command, *options);
  declare_model(*command, *options);
  for (const auto& [part, group] :
       {std::pair{"training", "Training"}, {"test", "Test"}, {"retrieval", "Retrieval"}}) {
    command->option_defaults()->group(group);
    declare_settings(*command, options->settings, part);
  }
  declare_run(*command, *options);
  command->callback(
      [options, command, command_line] { end_with(survey(*options, *command, command_line)); });
}

}  // namespace sextant::cli
