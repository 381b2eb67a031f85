// From what a person types after --methods to arms.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "sextant/error.h"
#include "sextant/lab/survey.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

// Options that are the survey's to choose, for they depend on the lengths or on how the decoder starts.
json survey_options(const std::string& method, const Settings& settings) {
  // A row for every position that is tested, those past L staying as they started; and rows of the
  // size of the embeddings, or it looks worse than it is: 1.88 nats at L with 0.7, 2.22 with 0.1.
  if (method == "learned") return {{"rows", settings.test.longest()}, {"init_std", 0.7}};
  if (method == "emd") return {{"rows", settings.test.longest()}};
  // T5 leaves the 1/sqrt(d) to a small start of W_q; the decoder starts all matrices alike.
  if (method == "t5") return {{"scaled", true}};
  return json::object();
}

// A window is not trained: it changes how weights that another method trained are read.
std::string weights_of(const std::string& method, json& options, const Settings& settings) {
  if (method != "window") return "";
  const std::string of = options.value("of", "rope");
  const json inner = survey_options(of, settings);
  if (!inner.empty()) options["options"] = inner;
  return of;
}

// "NAME:OPTION=VALUE:..." -> an arm without its seed; weights_from is a method. VALUE is JSON, or plain
// words.
Arm parse_method(const std::string& text, const Settings& settings) {
  size_t end = std::min(text.find(':'), text.size());
  Arm arm{.label = text, .method = text.substr(0, end)};
  json options = survey_options(arm.method, settings);
  while (end < text.size()) {
    const size_t begin = end + 1;
    end = std::min(text.find(':', begin), text.size());
    const std::string option = text.substr(begin, end - begin);
    const size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos) {
      fail("methods: " + text + ": expected NAME:OPTION=VALUE, but got " + option);
    }
    const std::string value = option.substr(equals + 1);
    const json parsed = json::parse(value, nullptr, /*allow_exceptions=*/false);
    options[option.substr(0, equals)] = parsed.is_discarded() ? json(value) : parsed;
  }
  arm.weights_from = weights_of(arm.method, options, settings);
  arm.options = options.dump();
  return arm;
}

}  // namespace

std::vector<std::string> default_methods() {
  return {"none", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw", "window"};
}

std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings) {
  if (methods.empty()) fail("methods: expected at least one, but got none");
  if (seeds < 1) fail("seeds: expected at least 1, but got " + std::to_string(seeds));
  std::vector<Arm> arms;
  const auto add = [&](Arm arm, int64_t seed) {
    arm.seed = static_cast<uint64_t>(seed);
    if (!arm.weights_from.empty()) arm.weights_from += "-" + std::to_string(seed);
    if (std::ranges::find(arms, arm.name(), &Arm::name) == arms.end()) arms.push_back(arm);
  };
  // Seed by seed, so that a survey that is stopped has seen every method.
  for (int64_t seed = 0; seed < seeds; ++seed) {
    for (const std::string& text : methods) {
      const Arm arm = parse_method(text, settings);
      if (!arm.weights_from.empty()) add(parse_method(arm.weights_from, settings), seed);
      add(arm, seed);
    }
  }
  return arms;
}

}  // namespace sextant::lab
