// sextant train CONFIG.json --out DIR: trains one model from a settings file. See
// sextant/lab/run/train_model.h.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "sextant/cli/commands.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/train_model.h"

namespace sextant::cli {
namespace {

struct Options {
  std::string config, directory, device;
  std::vector<std::string> text;
  double save_seconds = lab::Watch().seconds_between_checkpoints;
  bool example = false;
};

int train(const Options& options, const std::string& command_line) {
  if (options.example) {
    lab::print_text(lab::example_plan());
    return 0;
  }
  if (options.config.empty()) throw CLI::RequiredError("CONFIG");
  if (options.directory.empty()) throw CLI::RequiredError("--out");
  lab::TrainModelOptions training{.plan = lab::read_plan(options.config),
                                  .directory = options.directory,
                                  .command = command_line};
  if (!options.device.empty()) {
    lab::check_device_name(options.device);
    training.plan.settings.device = options.device;
  }
  if (!options.text.empty()) training.plan.text = {options.text.begin(), options.text.end()};
  if (training.plan.text.empty()) {
    training.plan.text = lab::default_text();
    training.own_text = false;
  }
  training.worker = {"/proc/self/exe", "arm",
                     "--threads",      std::to_string(training.plan.settings.threads),
                     "--save-seconds", std::to_string(options.save_seconds)};
  const lab::TrainEnd end = lab::train_model(training);
  if (end == lab::TrainEnd::kStopped) return lab::interrupted_status();
  return end == lab::TrainEnd::kDone ? 0 : 1;
}

}  // namespace

void add_train(CLI::App& app, const std::string& command_line) {
  CLI::App* command =
      app.add_subcommand("train", "Train one model of any size from a file of settings");
  auto options = std::make_shared<Options>();
  command->add_option("CONFIG", options->config, "JSON or TOML: what differs from --example");
  command
      ->add_option("--out", options->directory,
                   "Folder for the model, in Hugging Face's form; again: goes on there")
      ->type_name("DIR");
  command->add_option(
      "--text", options->text,
      "Files and folders of text (else those of CONFIG, or of Debian's python3-doc)");
  command
      ->add_option("--device", options->device,
                   "Where it trains and is tested: cpu, cuda, or cuda:1 for the second GPU")
      ->default_str("that of CONFIG");
  command
      ->add_option("--save-seconds", options->save_seconds,
                   "Seconds between checkpoints: what a kill can cost; 0: save after every step")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--example", options->example,
                    "Print a CONFIG with every field and its default");
  command->callback([options, command_line] { end_with(train(*options, command_line)); });
}

}  // namespace sextant::cli
