// The worker in Python measures the candidates (measure.h). The command then ranks them, prints the
// best in the words of engines, and writes the chosen one as a folder whose config.json is written
// last.
#include "sextant/cli/extend_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/base/error.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/report/model_report.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/result/engine_words.h"
#include "sextant/lab/run/measure_losses.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;

std::string on_one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// JSON as Python writes it.
std::string python_value(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.is_null() ? "None" : value.dump();
}

// The call that gives the candidate's positions to a model of transformers.
std::string python_call(const lab::StretchCandidate& candidate) {
  std::string call = fmt::format("sextant.transformers.stretch(model, \"{}\"", candidate.method);
  const nlohmann::json options = nlohmann::json::parse(candidate.options);
  for (const auto& option : options.items())
    call += fmt::format(", {}={}", option.key(), python_value(option.value()));
  return call + ")";
}

void print_words(const char* engine, const lab::EngineChoice& choice, const fs::path& file) {
  if (choice.candidate.empty()) {
    fs::remove(file);  // of an earlier run
    lab::print("  {:<13} cannot say any: {}\n", engine, choice.words.obstacle);
    return;
  }
  write_file(file, choice.words.text);
  // A whole config.json is long.
  const bool is_short = choice.words.text.size() < 300;
  lab::print("  {:<13} {:<11}  {}{}\n", engine, choice.candidate,
             is_short ? on_one_line(choice.words.text) + "  # " : "", file.string());
}

// The words of the best candidate that each engine has words for, or of the chosen one.
lab::EngineChoices words_of(const ExtendOptions& options, const lab::Checkpoint& checkpoint,
                            const lab::Extension& found) {
  std::vector<lab::StretchCandidate> ordered;
  for (const size_t n : lab::best_first(found)) {
    const lab::StretchCandidate& candidate = found.candidates[n].candidate;
    if (options.choose.empty() || candidate.name == options.choose) ordered.push_back(candidate);
  }
  return lab::first_words(checkpoint, ordered, options.length);
}

// Copies the folder with another config.json, which is written last.
void write_folder(const ExtendOptions& options, const lab::Checkpoint& checkpoint,
                  const std::string& config) {
  const fs::path to = options.write;
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint.path)) {
    if (!entry.is_regular_file() || entry.path().filename() == "config.json") continue;
    write_copy(entry.path(), to / entry.path().filename());
  }
  write_file(to / "config.json", config);
}

void check_request(const ExtendOptions& options, const lab::Checkpoint& checkpoint,
                   const std::vector<lab::StretchCandidate>& candidates) {
  if (options.write.empty()) return;
  if (!fs::is_directory(checkpoint.path) || checkpoint.rope.dialect == "GGUF")
    fail(
        "extend: --write: expected a model folder with config.json, but got a GGUF file; the "
        "words for engines are printed without it");
  if (options.choose.empty()) return;
  check_choice(options, candidates);
  const auto chosen = std::ranges::find(candidates, options.choose, &lab::StretchCandidate::name);
  const lab::EngineWords words = lab::engine_words(checkpoint, *chosen, options.length);
  if (words.hugging_face.text.empty())
    fail("extend: --choose: expected a candidate that config.json can express, but got " +
         options.choose + ": " + words.hugging_face.obstacle);
}

void print_all(const ExtendOptions& options, const lab::Checkpoint& checkpoint,
               const lab::Extension& found, const lab::Recommendation& recommendation,
               const fs::path& folder) {
  lab::print_text(lab::table(found));
  lab::print("\nRecommended: {}.\n", recommendation.reason);
  const lab::StretchCandidate& best = found.candidates.at(recommendation.best).candidate;
  if (recommendation.best != 0) lab::print("In Python: {}\n", python_call(best));
  const lab::EngineChoices words = words_of(options, checkpoint, found);
  lab::print("\nFor {} tokens, {}:\n", options.length,
             options.choose.empty() ? "the best candidate that each engine has words for"
                                    : "the chosen candidate in the words of engines");
  print_words("transformers", words.hugging_face, folder / "words" / "config.json");
  print_words("vLLM", words.vllm, folder / "words" / "vllm.txt");
  print_words("llama.cpp", words.llama_cpp, folder / "words" / "llama.cpp.txt");
}

// The result with the words of the engines; null where an engine has none.
std::string json_of(const ExtendOptions& options, const lab::Checkpoint& checkpoint,
                    const lab::Extension& found, const lab::Recommendation& recommendation) {
  nlohmann::json out = nlohmann::json::parse(lab::json_text(found, recommendation));
  const lab::EngineChoices words = words_of(options, checkpoint, found);
  const auto said = [](const lab::EngineChoice& choice) {
    if (choice.candidate.empty()) return nlohmann::json();
    return nlohmann::json{{"candidate", choice.candidate}, {"words", choice.words.text}};
  };
  out["model"] = checkpoint.name;
  out["words"] = {{"hugging_face", said(words.hugging_face)},
                  {"vllm", said(words.vllm)},
                  {"llama_cpp", said(words.llama_cpp)}};
  return out.dump(2) + "\n";
}

}  // namespace

void extend_checkpoint(const ExtendOptions& options) {
  const EvaluationOptions& evaluation = *options.evaluation;
  const lab::Checkpoint checkpoint = lab::read_checkpoint("extend", evaluation.model);
  lab::check_can_stretch(checkpoint);
  const int64_t trained = checkpoint.train_length;
  if (options.length <= trained)
    fail(fmt::format("extend: --length: expected more than the training length, {}, but got {}",
                     trained, options.length));
  const std::vector<lab::StretchCandidate> candidates =
      lab::checkpoint_candidates(checkpoint, options.length, options.candidates);
  check_request(options, checkpoint, candidates);
  check_folders(options);
  lab::CheckpointRequest request = checkpoint_request_of("extend", evaluation);
  request.text.lengths = {trained, options.length};
  const fs::path folder = lab::folder_of(request, checkpoint);
  lab::MeasureEnd end{};
  const std::optional<lab::Extension> found =
      lab::extend_checkpoint(request, checkpoint, candidates, end);
  if (!found) end_without_result(end, folder);
  const lab::Recommendation recommendation = lab::recommend(*found);
  const std::string text = json_of(options, checkpoint, *found, recommendation);
  write_file(folder / lab::kResultsFile, text);
  if (evaluation.as_json) {
    lab::print_text(text);
  } else {
    print_all(options, checkpoint, *found, recommendation, folder);
  }
  if (!options.write.empty()) {
    const lab::StretchCandidate& candidate = candidate_to_write(options, *found, recommendation);
    const lab::EngineWords words = lab::engine_words(checkpoint, candidate, options.length);
    if (words.hugging_face.text.empty())
      fail("extend: --write: no candidate that was measured can be said in config.json");
    write_folder(options, checkpoint, words.hugging_face.text);
    if (!evaluation.as_json)
      lab::print("{}: the model, stretched by {}\n", options.write, candidate.name);
  }
  write_chart(lab::chart_of(*found, recommendation), folder / "extend", evaluation.as_json);
  write_chart(lab::chart_by_position(*found, recommendation), folder / "loss-by-position",
              evaluation.as_json);
}

}  // namespace sextant::cli
