// sextant evaluate MODEL --lengths ...: measures a model's loss on text at several lengths.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "sextant/cli/commands.h"
#include "sextant/cli/evaluation_options.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/report/model_report.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

void print(const lab::ModelEvaluation& found, const EvaluationOptions& options,
           const std::filesystem::path& folder) {
  lab::print_text(options.as_json ? lab::json_text(found) : lab::table(found));
  if (!folder.empty())
    write_chart(lab::chart_of(found), folder / "loss-by-length", options.as_json);
}

void evaluate_checkpoint(const EvaluationOptions& options) {
  const lab::Checkpoint checkpoint = lab::read_checkpoint("evaluate", options.model);
  const lab::CheckpointRequest request = checkpoint_request_of("evaluate", options);
  lab::MeasureEnd end{};
  const std::optional<lab::ModelEvaluation> found =
      lab::evaluate_checkpoint(request, checkpoint, end);
  const std::filesystem::path folder = lab::folder_of(request, checkpoint);
  if (!found) end_without_result(end, folder);
  print(*found, options, folder);
}

void evaluate(const EvaluationOptions& options) {
  if (!options.out.empty()) check_can_write(options.out);
  if (!lab::is_model_of_bytes(options.model)) return evaluate_checkpoint(options);
  refuse_checkpoint_options("evaluate", options);
  const lab::EvaluationRequest request = request_of(options);
  lab::ModelEvaluation found;
  {
    lab::Progress progress;
    found = lab::open_plugin(threads_of(options))
                .evaluate_model(request, [&](int64_t done, int64_t total) {
                  progress.show({static_cast<double>(done), static_cast<double>(total)},
                                fmt::format("block {}/{}", done, total));
                });
  }
  print(found, options, options.out);
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
