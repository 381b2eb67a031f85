// sextant survey: trains a small transformer with each position encoding on short text and tests it
// on long text. See sextant/lab/survey/survey.h.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "sextant/cli/commands.h"
#include "sextant/cli/many_machines.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/arms_file.h"
#include "sextant/lab/report/claimed_arms.h"
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
  const std::string group = "What is compared";
  command
      .add_option(
          "--methods", options.methods,
          "Methods, with options as rope:base=1e6:dim=16; FILE.py:CLASS: an encoding of one's own "
          "in Python; `all`: every method; `stretches`: every stretch of a trained rope (default: "
          "see --list)")
      ->delimiter(',')
      ->group(group);
  command
      .add_option("--task", options.task,
                  "causal: the next byte, and retrieval; masked: masked bytes with attention in "
                  "both directions (BERT), and the direction task")
      ->check(CLI::IsMember({"causal", "masked"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--arms", options.arms_file,
          "A file in JSON or TOML: {\"arms\": [methods as above, or {\"label\", \"method\", "
          "\"options\"}], \"settings\": {...}}")
      ->excludes("--methods")
      ->group(group);
  command
      .add_option("--claims", options.claims,
                  "The arms that claims of the literature need: `open`, those of the open "
                  "questions, or `all` (see sextant claims)")
      ->check(CLI::IsMember({"open", "all"}))
      ->excludes("--methods")
      ->excludes("--arms")
      ->group(group);
  command
      .add_option(
          "--tune", options.all.tune,
          "Steps by which each stretch of a trained rope is also trained on, at the longest "
          "length; 0: none")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--drop-channels", options.drop_channels,
                  "Also test each encoding that adds a vector to the input with this many of its "
                  "channels set to zero; several: 1,4,16")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->group(group);
  command.add_flag("--list", options.list, "Say what there is to compare, and end")->group(group);
  command.add_option("--seeds", options.seeds, "Trainings of each, from seeds 0, 1, ...")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--text", options.text,
                  "Files and folders of text (else the sources of Debian's python3-doc)")
      ->group(group);
}

void declare_model(CLI::App& command, Options& options) {
  DecoderOptions& model = options.settings.model;
  const auto add = [&](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what)->capture_default_str()->group("Model");
  };
  add("--layers", model.layers, "Layers");
  add("--width", model.width, "Width of the residual stream");
  add("--heads", model.heads, "Heads of queries");
  command.add_option("--key-heads", model.key_heads, "Heads of keys and values (else --heads)")
      ->group("Model");
  command.add_option("--mlp-width", model.mlp_width, "Width of the hidden layer (else 4 widths)")
      ->group("Model");
  add("--memory", options.all.memory,
      "Positions remembered of the segments before (Transformer-XL); of one: t5:memory=128");
  add("--norm", options.norm, "layernorm or rmsnorm");
  add("--activation", options.activation, "gelu, relu2 or swiglu");
}

void declare_training(CLI::App& command, lab::Settings& settings) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    command.add_option(name, value, what)->capture_default_str()->group("Training");
  };
  add("--length", settings.training.length, "Length of the training sequences, L");
  add("--bytes", settings.training.bytes, "Bytes that each training sees");
  add("--batch", settings.training.batch, "Sequences in a step");
  add("--learning-rate", settings.training.learning_rate, "At its peak");
  add("--warmup", settings.training.warmup, "Share of the steps in which it rises");
  add("--weight-decay", settings.training.weight_decay, "Of matrices");
  add("--clip", settings.training.clip, "Largest norm of a gradient");
}

void declare_test(CLI::App& command, lab::TestOptions& test) {
  command.add_option("--lengths", test.lengths, "Lengths tested (else 1, 2, 4 and 8 times L)")
      ->delimiter(',')
      ->group("Test");
  const auto add = [&](const char* name, auto& value, const char* what) {
    command.add_option(name, value, what)->capture_default_str()->group("Test");
  };
  add("--blocks", test.blocks, "Sequences of the longest length");
  add("--bin", test.bin, "Positions in one point of \"loss by position\"");
  add("--share", test.share, "Share of the text that is held out");
}

void declare_retrieval(CLI::App& command, lab::RetrievalOptions& retrieval) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what)->capture_default_str()->group("Retrieval");
  };
  add("--retrieval-steps", retrieval.steps, "Training steps of the second task; 0: leave it out");
  add("--retrieval-batch", retrieval.batch, "Sequences in a step");
  add("--retrieval-length", retrieval.length, "Length of its training sequences");
  add("--retrieval-learning-rate", retrieval.learning_rate, "At its peak");
  add("--retrieval-layers", retrieval.layers, "Layers");
  command.add_option("--retrieval-width", retrieval.width, "Width (else 16 for each head)")
      ->group("Retrieval");
  command
      .add_option("--retrieval-lengths", retrieval.lengths,
                  "Lengths tested (else 1, 2, 4 and 8 times its length)")
      ->delimiter(',')
      ->group("Retrieval");
  add("--retrieval-texts", retrieval.texts, "Sequences of each length and distance");
}

void declare_run(CLI::App& command, Options& options) {
  const std::string group = "Running";
  command.add_option("--out", options.directory, "Where the survey lives; again: goes on there")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--jobs", options.jobs,
                  "Trainings at a time (else the cores divided by --threads, at least 1)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  command.add_option("--threads", options.settings.threads, "Threads of each")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--device", options.settings.device,
                  "Where each trains and is tested: cpu, cuda (--jobs is then 1 by default), or "
                  "cuda:1 for the second GPU")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--save-seconds", options.save_seconds,
                  "Seconds between checkpoints: what a kill can cost; 0: save after every step")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command.add_flag("--smoke", options.smoke, "Everything tiny, in seconds: does it work here?")
      ->group(group);
  command.add_flag("--dry-run", options.dry_run, "Say what would be done")->group(group);
  declare_many_machines(command, options.many, /*has_jobs=*/true);
}

// Derives the values of options that were not given from the other options.
void complete(Options& options, const CLI::App& command) {
  lab::Settings& settings = options.settings;
  settings.objective = lab::objective_named(options.task);
  if (options.methods.empty()) options.methods = lab::default_methods(settings.objective);
  const auto unless_given = [&](const char* name, auto& value, auto otherwise) {
    if (command.count(name) == 0) value = otherwise;
  };
  if (options.smoke) {
    unless_given("--layers", settings.model.layers, 1);
    unless_given("--width", settings.model.width, 32);
    unless_given("--heads", settings.model.heads, 2);
    unless_given("--length", settings.training.length, 32);
    unless_given("--bytes", settings.training.bytes, 25'600);
    unless_given("--blocks", settings.test.blocks, 8);
    unless_given("--out", options.directory, "runs/smoke");
    unless_given("--retrieval-steps", settings.retrieval.steps, 10);
    unless_given("--retrieval-batch", settings.retrieval.batch, 8);
    unless_given("--retrieval-length", settings.retrieval.length, 16);
    unless_given("--retrieval-layers", settings.retrieval.layers, 1);
    unless_given("--retrieval-texts", settings.retrieval.texts, 8);
  }
  const int64_t length = settings.training.length;
  unless_given("--key-heads", settings.model.key_heads, settings.model.heads);
  unless_given("--mlp-width", settings.model.mlp_width, 4 * settings.model.width);
  unless_given("--lengths", settings.test.lengths,
               std::vector<int64_t>{length, 2 * length, 4 * length, 8 * length});
  unless_given("--retrieval-width", settings.retrieval.width, 16 * settings.model.heads);
  const int64_t pairs = settings.retrieval.length;
  unless_given("--retrieval-lengths", settings.retrieval.lengths,
               std::vector<int64_t>{pairs, 2 * pairs, 4 * pairs, 8 * pairs});
  settings.model.norm = norm(options.norm);
  settings.model.activation = activation(options.activation);
}

std::vector<std::string> names_of(std::span<const lab::KnownMethod> known) {
  std::vector<std::string> names;
  for (const lab::KnownMethod& method : known) names.push_back(method.name);
  return names;
}

std::vector<lab::ArmRequest> requests_of_claims(const std::string& claims,
                                                const lab::Settings& settings) {
  std::vector<lab::ArmRequest> requests;
  for (const std::string& arm : lab::arms_of_claims(claims == "open", settings)) {
    requests.push_back(lab::request_of(arm));
  }
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

int list(int threads) {
  lab::print("Methods, with their options and defaults:\n");
  for (const lab::KnownMethod& method : lab::open_plugin(threads).methods()) {
    lab::print("  {:<16}{}\n  {:<16}{}\n", method.name, method.summary, "", method.options);
  }
  lab::print(
      "\nStretches of a trained rope past its length, by the longest length tested "
      "over L.\n ");
  for (const std::string& name : lab::stretches()) lab::print(" {}", name);
  lab::print(
      "\n\nOptions of every method: weights=rope (use the weights that rope trained), "
      "weights=own, "
      "memory=128,\ntune=60 (train those weights further), drop_channels=4 (test without channels "
      "of the\nadded vector). A value such as L or L/2 follows "
      "the training length.\nWords for several: all, stretches. Without --methods:\n ");
  for (const std::string& name : lab::default_methods(lab::Objective::kCausal))
    lab::print(" {}", name);
  lab::print("\nWith --task masked (where causal=true hides later positions):\n ");
  for (const std::string& name : lab::default_methods(lab::Objective::kMasked))
    lab::print(" {}", name);
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
  switch (lab::run_survey(survey)) {
    case lab::SurveyEnd::kDone:
      if (options.many.prepare && !options.dry_run) remember_command(survey.directory);
      return 0;
    case lab::SurveyEnd::kIncomplete:
      return kIncomplete;
    case lab::SurveyEnd::kSomeFailed:
      return 1;
    case lab::SurveyEnd::kStopped:
      break;
  }
  return lab::interrupted_status();
}

}  // namespace

void add_survey(CLI::App& app, const std::string& command_line) {
  CLI::App* command = app.add_subcommand(
      "survey",
      "Train a small transformer with each position encoding on short text, test it on long text");
  auto options = std::make_shared<Options>();
  declare_what(*command, *options);
  declare_model(*command, *options);
  declare_training(*command, options->settings);
  declare_test(*command, options->settings.test);
  declare_retrieval(*command, options->settings.retrieval);
  declare_run(*command, *options);
  command->callback([options, command, command_line] {
    const int status = survey(*options, *command, command_line);
    if (status != 0) throw CLI::RuntimeError(status);
  });
}

}  // namespace sextant::cli
