// sextant evaluate MODEL --lengths ...: measures a model's loss on text at several lengths.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sextant/cli/commands.h"
#include "sextant/cli/evaluation_options.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/report/model_report.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/progress.h"

namespace sextant::cli {
namespace {

void evaluate(const EvaluationOptions& options) {
  const lab::EvaluationRequest request = request_of(options);
  if (!options.plot.empty()) check_can_write(options.plot);
  lab::ModelEvaluation found;
  {
    lab::Progress progress;
    found = lab::open_plugin(threads_of(options))
                .evaluate_model(request, [&](int64_t done, int64_t total) {
                  progress.show({static_cast<double>(done), static_cast<double>(total)},
                                fmt::format("block {}/{}", done, total));
                });
  }
  fmt::print("{}", options.as_json ? lab::json_text(found) : lab::table(found));
  plot(lab::chart_of(found), "loss-by-length", options);
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evaluate", "Measure a model on text: loss and perplexity against length");
  auto options = add_evaluation_options(*command);
  command->add_option("--lengths", options->request.lengths, "Lengths, divisors of the longest")
      ->required()
      ->delimiter(',');
  command
      ->add_option("--drop-channels", options->request.drop_channels,
                   "Set this many channels of the vector that the encoding adds to the input to "
                   "zero: does the model survive their loss?")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--drop-seed", options->request.drop_seed,
                   "Seed that these channels are drawn from")
      ->capture_default_str()
      ->needs("--drop-channels");
  command->callback([options] { evaluate(*options); });
}

}  // namespace sextant::cli
