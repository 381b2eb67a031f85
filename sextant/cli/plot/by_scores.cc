#include "sextant/cli/plot/by_scores.h"

#include <fmt/format.h>

#include "sextant/base/error.h"
#include "sextant/cli/plot/projected.h"

namespace sextant::cli {
namespace {

std::vector<Figure> figures_by_scores(const PlotValues& values) {
  const lab::EncodingRequest request = {
      .method = values.method(),
      .options = values.text("options"),
      .heads = values.integer("heads", 1, 64),
      .head_dim = values.integer("head-dim", 1, 1024),
      .length = values.integer("length", 1, 2048),
      .causal = values.choice("direction", {"causal", "both"}) == 0};
  const lab::ProbedEncoding encoding = lab::open_plugin(/*threads=*/1).probe_encoding(request);
  PlotSubject subject = {.title = request.method,
                         .settings = request.options == "{}" ? "" : request.options + "; ",
                         .positions = {}};
  for (int64_t n = 0; n < request.length; ++n) subject.positions.list.push_back(n);
  if (!encoding.input.empty()) {
    subject.settings += fmt::format("width {}, before training", request.heads * request.head_dim);
    return added_figures(values, subject, encoding.input);
  }
  subject.settings += fmt::format(
      "one vector as query and key everywhere, heads of {}, before training", request.head_dim);
  return score_figures(subject, encoding.scores);
}

}  // namespace

std::vector<lab::KnownMethod> methods_of_laboratory() {
  try {
    return lab::open_plugin(/*threads=*/1).methods();
  } catch (const Error&) {
    return {};  // callers report the missing library
  }
}

PlottedMethod plot_by_scores(const std::string& method) {
  return {method,
          "By its scores, or by what it adds to the input",
          {{"heads", "number of heads", "4"},
           {"head-dim", "head size", "32"},
           {"length", "draw positions below this", "64"},
           {"direction", "causal: the past only; both: encoders", "causal"},
           {"seed", "of random W_q and W_k, for vectors that are added to the input", "1"},
           {"options", "", "{}"}},
          figures_by_scores};
}

}  // namespace sextant::cli
