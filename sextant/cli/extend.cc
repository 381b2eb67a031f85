// sextant extend MODEL --length LENGTH: measures candidates for using a trained rope past its
// training length on text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "sextant/base/error.h"
#include "sextant/cli/commands.h"
#include "sextant/cli/evaluation_options.h"
#include "sextant/cli/extend_checkpoint.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/report/model_report.h"
#include "sextant/lab/result/stretch_candidates.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

// L, 2 L, 4 L, ... as far as they divide the length, and the length itself.
std::vector<int64_t> lengths_up_to(int64_t length, int64_t trained) {
  if (trained < 1 || length % trained != 0 || length <= trained)
    fail(fmt::format("extend: --length: expected a multiple of the training length, {}, but got {}",
                     trained, length));
  std::vector<int64_t> lengths;
  for (int64_t n = trained; n < length; n *= 2)
    if (length % n == 0) lengths.push_back(n);
  lengths.push_back(length);
  return lengths;
}

void say(const lab::Extension& extension, const lab::Recommendation& recommendation,
         const ExtendOptions& options) {
  lab::print_text(lab::table(extension));
  lab::print("\nRecommended: {}.\n", recommendation.reason);
  if (!recommendation.writable) {
    lab::print("The config.json of this architecture has words for none of them.\n");
  } else if (*recommendation.writable != recommendation.best) {
    const lab::MeasuredCandidate& candidate = extension.candidates.at(*recommendation.writable);
    lab::print("Of what config.json can say: {}, {:.3f} nats per byte there.\n",
               candidate.candidate.name, candidate.lengths.back().sliding.value);
  }
  if (!options.write.empty()) return;
  if (recommendation.writable) {
    lab::print("--write DIR writes {}, --write DIR --choose NAME another one.\n",
               extension.candidates.at(*recommendation.writable).candidate.name);
  } else {
    lab::print("--write DIR needs --choose NAME here.\n");
  }
}

void extend(const ExtendOptions& options) {
  const EvaluationOptions& evaluation = *options.evaluation;
  if (!lab::is_model_of_bytes(evaluation.model)) return extend_checkpoint(options);
  refuse_checkpoint_options("extend", evaluation);
  if (!options.candidates.empty())
    fail(
        "extend: --candidates: expected a checkpoint with tokens; of models of bytes all "
        "candidates are measured");
  const lab::Plugin& plugin = lab::open_plugin(threads_of(evaluation));
  lab::EvaluationRequest request = request_of(evaluation);
  const int64_t trained = plugin.train_length(request.model);
  request.lengths = lengths_up_to(options.length, trained);
  // These checks would otherwise fail only after minutes of measurement. The names of the
  // candidates are the same for every rope.
  check_choice(options, lab::stretch_candidates("{}", trained, options.length));
  check_folders(options);
  lab::Extension found;
  {
    lab::Progress progress;
    found = plugin.extend_model(request, [&](int64_t done, int64_t total) {
      progress.show({static_cast<double>(done), static_cast<double>(total)},
                    fmt::format("block {}/{} of all stretches", done, total));
    });
  }
  const lab::Recommendation recommendation = lab::recommend(found);
  if (evaluation.as_json) {
    lab::print_text(lab::json_text(found, recommendation));
  } else {
    say(found, recommendation, options);
  }
  // The model is written before the chart, which can be redrawn from the printed numbers.
  if (!options.write.empty()) {
    if (options.choose.empty() && !recommendation.writable)
      fail(
          "extend: --write: no stretch that was measured can be said in the config.json of this "
          "architecture; --choose NAME writes one in Sextant's own");
    const lab::StretchCandidate& candidate = candidate_to_write(options, found, recommendation);
    plugin.write_extended(request.model, candidate, options.write);
    if (!evaluation.as_json)
      lab::print("{}: the model, stretched by {}\n", options.write, candidate.name);
  }
  if (evaluation.out.empty()) return;
  const std::filesystem::path folder = evaluation.out;
  write_chart(lab::chart_of(found, recommendation), folder / "extend", evaluation.as_json);
}

}  // namespace

void check_choice(const ExtendOptions& options,
                  const std::vector<lab::StretchCandidate>& candidates) {
  if (options.choose.empty()) return;
  std::string known;
  for (const lab::StretchCandidate& candidate : candidates) {
    if (candidate.name == options.choose) return;
    known += " " + candidate.name;
  }
  fail("extend: --choose: expected one of" + known + ", but got " + options.choose);
}

const lab::StretchCandidate& candidate_to_write(const ExtendOptions& options,
                                                const lab::Extension& extension,
                                                const lab::Recommendation& recommendation) {
  for (const lab::MeasuredCandidate& one : extension.candidates)
    if (one.candidate.name == options.choose) return one.candidate;
  const size_t best = recommendation.writable.value_or(recommendation.best);
  return extension.candidates.at(best).candidate;
}

void check_folders(const ExtendOptions& options) {
  const std::filesystem::path to = options.write, from = options.evaluation->model;
  if (!options.evaluation->out.empty()) check_can_write(options.evaluation->out);
  if (options.write.empty()) return;
  check_can_write(to);
  std::error_code error;
  if (std::filesystem::equivalent(from, to, error))
    fail("extend: --write: expected another folder than that of the model, but got " + to.string());
}

void add_extend(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "extend", "Measure every stretch of a trained rope past its length, and recommend one");
  auto options = std::make_shared<ExtendOptions>();
  options->evaluation = add_evaluation_options(*command);
  command
      ->add_option("--length", options->length,
                   "The length wanted; of a model of bytes a multiple of the trained one")
      ->required();
  command
      ->add_option("--write", options->write,
                   "Folder for the model with the best stretch that its config.json can express")
      ->type_name("DIR");
  command->add_option("--choose", options->choose, "With --write: this stretch instead")
      ->type_name("NAME")
      ->needs("--write");
  command
      ->add_option("--candidates", options->candidates,
                   "Of a checkpoint: all, or some by name (else direct, pi, ntk, yarn, dynamic, "
                   "rerope, self-extend and dual-chunk)")
      ->delimiter(',');
  command->callback([options] { extend(*options); });
}

}  // namespace sextant::cli
