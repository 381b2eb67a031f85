#include "sextant/cli/evaluation_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

#include "sextant/base/error.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {

std::shared_ptr<EvaluationOptions> add_evaluation_options(CLI::App& command) {
  auto options = std::make_shared<EvaluationOptions>();
  lab::EvaluationRequest& request = options->request;
  command
      .add_option("MODEL", options->model, "Folder with config.json and weights, or a .gguf file")
      ->required();
  command.add_option("--text", options->text,
                     "Files and folders of text, all of it (else what a training on Debian's "
                     "python3-doc holds out)");
  request.share = 0;
  command
      .add_option("--share", request.share,
                  "Share of the text that is used: what a training with this test.share holds out "
                  "(else 1 of --text)")
      ->check(CLI::Range(0.001, 1.0));
  command.add_option(
      "--blocks", request.blocks,
      "Sequences of the longest length (else as many as there are, at most 64; of a checkpoint 8)");
  command.add_option("--stride", request.stride,
                     "Bytes or tokens scored in each sliding window, at its end, or in its middle "
                     "by a model of masked bytes (else half of the training length)");
  command.add_option("--threads", options->threads, "Threads (else as many as cores)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--device", request.device,
                  "Of a model of bytes: cpu, cuda, or cuda:1 for the second GPU")
      ->capture_default_str();
  command.add_flag("--json", options->as_json, "Everything, for programs");
  command
      .add_option("--out", options->out,
                  "Folder for charts; of a checkpoint also for its measurement; again: goes on "
                  "there (else runs/COMMAND-MODEL)")
      ->type_name("DIR");
  command.add_option("--dtype", options->dtype, "Of a checkpoint: that of its weights")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}))
      ->capture_default_str();
  declare_many_machines(command, options->many, /*has_jobs=*/false);
  return options;
}

lab::EvaluationRequest request_of(const EvaluationOptions& options) {
  lab::EvaluationRequest request = options.request;
  request.model = options.model;
  request.text = {options.text.begin(), options.text.end()};
  const double otherwise = request.text.empty() ? lab::TestOptions().share : 1;
  if (request.text.empty()) request.text = lab::default_text();
  if (request.share == 0) request.share = otherwise;
  return request;
}

lab::CheckpointRequest checkpoint_request_of(const std::string& command,
                                             const EvaluationOptions& options) {
  if (options.request.device != lab::kCpu)
    fail(command + ": --device: expected cpu for a checkpoint with tokens, but got " +
         options.request.device);
  lab::CheckpointRequest request{.command = command,
                                 .text = request_of(options),
                                 .out = options.out,
                                 .dtype = options.dtype,
                                 .threads = threads_of(options),
                                 .hand_out = hand_out_of(options.many)};
  if (!options.many.collected.empty()) request.out = options.many.collected;
  if (options.request.share == 0) request.text.share = 1;
  return request;
}

void refuse_checkpoint_options(const std::string& command, const EvaluationOptions& options) {
  const auto refuse = [&](const std::string& option) {
    fail(command + ": " + option + ": expected a checkpoint with tokens, but " + options.model +
         " is a model of bytes, or has no config.json");
  };
  if (options.dtype != "auto") refuse("--dtype");
  if (options.many.prepare) refuse("--prepare");
  if (!options.many.launch.empty()) refuse("--launch");
}

int threads_of(const EvaluationOptions& options) { return threads_or_cores(options.threads); }

int threads_or_cores(int threads) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void write_chart(const chart::LineChart& chart, const std::filesystem::path& stem, bool as_json) {
  const auto write = [&](chart::Format format) {
    for (const auto& path : chart::write_figure(chart, stem, std::span(&format, 1))) {
      if (!as_json) lab::print("{}\n", path.string());
    }
  };
  write(chart::Format::kCsv);
  write(chart::Format::kSvg);
  try {
    write(chart::Format::kPng);
  } catch (const CannotWrite&) {
    throw;
  } catch (const Error& error) {
    lab::note(fmt::format("the chart is written as SVG only: {}", error.what()));
  }
}

}  // namespace sextant::cli
