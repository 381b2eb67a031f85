// What evaluate and extend share: the options that say how a model is read and what on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/lab/run/model_work.h"

namespace CLI {
class App;
}

namespace sextant::cli {

struct ReadingOptions {
  lab::EvaluationRequest request;
  std::string model;
  std::vector<std::string> text;
  int threads = 0;  // 0: as many as cores
  bool as_json = false;
  std::string plot;  // folder
};

// MODEL, --text, --share, --blocks, --stride, --threads, --json, --plot.
std::shared_ptr<ReadingOptions> add_reading(CLI::App& command);

// What they come to, but for the lengths. Where no text is given it is the default's, of which the
// part is read that a training with the default share held out.
lab::EvaluationRequest request_of(const ReadingOptions& options);

int threads_of(const ReadingOptions& options);

// Lines of loss against length in a folder, as SVG and CSV, and PNG where that can be made. Their
// paths are printed unless JSON is.
void plot(const chart::LineChart& chart, const std::string& name, const ReadingOptions& options);

}  // namespace sextant::cli
