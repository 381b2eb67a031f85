// Command-line options shared by evaluate and extend: the model and the text it is measured on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/cli/many_machines.h"
#include "sextant/lab/result/model_work.h"
#include "sextant/lab/run/measure_losses.h"

namespace CLI {
class App;
}

namespace sextant::cli {

struct EvaluationOptions {
  lab::EvaluationRequest request;
  std::string model;
  std::vector<std::string> text;
  int threads = 0;  // 0: the number of cores
  bool as_json = false;
  std::string out;  // folder of charts, and of the measurement of a checkpoint
  // Of checkpoints, which a Python worker measures.
  std::string dtype = "auto";
  ManyMachines many;
};

// MODEL, --text, --share, --blocks, --stride, --threads, --device, --json, --out, --dtype, and
// those of many_machines.h.
std::shared_ptr<EvaluationOptions> add_evaluation_options(CLI::App& command);

// Makes a request without lengths. If no text is given, it is the default text, restricted to the
// part that a training with the default share holds out.
lab::EvaluationRequest request_of(const EvaluationOptions& options);

// The same for a checkpoint, of which the default text is the whole.
lab::CheckpointRequest checkpoint_request_of(const std::string& command,
                                             const EvaluationOptions& options);

// Throws Error if options of checkpoints were given for a model of bytes.
void refuse_checkpoint_options(const std::string& command, const EvaluationOptions& options);

int threads_of(const EvaluationOptions& options);
// The number of cores if `threads` is 0.
int threads_or_cores(int threads);

// Writes a chart as SVG and CSV, and as PNG if possible; `stem` is its path without extension.
// Prints the paths unless the output is JSON.
void write_chart(const chart::LineChart& chart, const std::filesystem::path& stem, bool as_json);

}  // namespace sextant::cli
