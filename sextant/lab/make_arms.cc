// From what a person types after --methods to arms.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sextant/error.h"
#include "sextant/lab/survey.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

constexpr const char* kMemory = "memory";
constexpr const char* kWeights = "weights";
constexpr const char* kOwn = "own";

// Not trained unless asked to be: they change how weights that rope trained are read.
constexpr std::array<std::string_view, 6> kReaders = {"dual-chunk",  "leaky-rerope", "rerope",
                                                      "self-extend", "streaming",    "window"};
constexpr int64_t kMostMemory = int64_t{1} << 30;

// Options that are the survey's to choose, for they depend on the lengths or on how the decoder starts.
json survey_options(const std::string& method, const Settings& settings, int64_t memory) {
  const int64_t reach = std::max(settings.test.longest(), settings.training.length + memory);
  // A row for every position that is tested, those past L staying as they started; and rows of the
  // size of the embeddings, or it looks worse than it is: 1.88 nats at L with 0.7, 2.22 with 0.1.
  if (method == "learned") return {{"rows", reach}, {"init_std", 0.7}};
  if (method == "emd") return {{"rows", reach}};
  if (method == "tupe") return {{"max_positions", reach}};
  if (method == "relative-key") return {{"max_position_embeddings", reach}};
  // By how much distances beyond the window must shrink, so that the longest one tested is one of training.
  const auto shrink = [&](int64_t window) {
    return static_cast<double>(reach - window) /
           static_cast<double>(settings.training.length - window);
  };
  if (method == "leaky-rerope") return {{"factor", shrink(settings.training.length / 2)}};
  if (method == "self-extend") {
    return {{"group", static_cast<int64_t>(std::ceil(shrink(settings.training.length / 4)))}};
  }
  // T5 leaves the 1/sqrt(d) to a small start of W_q; the decoder starts all matrices alike.
  if (method == "t5") return {{"scaled", true}};
  return json::object();
}

std::string with_memory(const std::string& label, int64_t memory) {
  return memory > 0 ? label + ":" + kMemory + "=" + std::to_string(memory) : label;
}

// Takes out of the options whose weights are read; "" for its own.
std::string weights_of(const Arm& arm, json& options, const Settings& settings) {
  const bool reads = std::ranges::find(kReaders, arm.method) != kReaders.end();
  std::string of = reads ? "rope" : kOwn;
  if (arm.method == "window") {
    of = options.value("of", "rope");
    const json inner = survey_options(of, settings, arm.memory);
    if (!inner.empty()) options["options"] = inner;
  }
  if (options.contains(kWeights)) {
    const json given = options.at(kWeights);
    options.erase(kWeights);
    if (!given.is_string()) {
      fail(fmt::format("methods: {}: weights: expected a method's name or {}, but got {}",
                       arm.label, kOwn, given.dump()));
    }
    of = given;
  }
  return of == kOwn ? "" : with_memory(of, arm.memory);
}

// "NAME:OPTION=VALUE:..." -> its options. VALUE is JSON, or plain words.
json options_in(const std::string& text) {
  json options = json::object();
  for (size_t end = std::min(text.find(':'), text.size()); end < text.size();) {
    const size_t begin = end + 1;
    end = std::min(text.find(':', begin), text.size());
    const std::string option = text.substr(begin, end - begin);
    const size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos) {
      fail(fmt::format("methods: {}: expected NAME:OPTION=VALUE, but got {}", text, option));
    }
    const std::string value = option.substr(equals + 1);
    const json parsed = json::parse(value, nullptr, /*allow_exceptions=*/false);
    options[option.substr(0, equals)] = parsed.is_discarded() ? json(value) : parsed;
  }
  return options;
}

// Takes the decoder's option out of the method's.
int64_t memory_in(json& options, const std::string& text) {
  const json memory = options.at(kMemory);
  options.erase(kMemory);
  if (!memory.is_number_unsigned() || memory > kMostMemory) {
    fail("methods: " + text + ": memory: expected 0 to " + std::to_string(kMostMemory) +
         ", but got " + memory.dump());
  }
  return memory.get<int64_t>();
}

// An arm without its seed; weights_from is a label.
Arm parse_method(const std::string& text, const Settings& settings, int64_t memory) {
  Arm arm{.label = text, .method = text.substr(0, text.find(':')), .memory = memory};
  json given = options_in(text);
  if (given.contains(kMemory)) {
    arm.memory = memory_in(given, text);
  } else {
    arm.label = with_memory(text, memory);
  }
  json options = survey_options(arm.method, settings, arm.memory);
  options.update(given);
  arm.weights_from = weights_of(arm, options, settings);
  arm.options = options.dump();
  return arm;
}

}  // namespace

std::vector<std::string> default_methods() {
  return {"none", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw", "window"};
}

std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings, int64_t memory) {
  if (methods.empty()) fail("methods: expected at least one, but got none");
  if (seeds < 1) fail("seeds: expected at least 1, but got " + std::to_string(seeds));
  if (memory < 0) fail("memory: expected at least 0, but got " + std::to_string(memory));
  std::vector<Arm> arms;
  const auto add = [&](Arm arm, int64_t seed) {
    arm.seed = static_cast<uint64_t>(seed);
    if (!arm.weights_from.empty()) arm.weights_from += fmt::format("-{}", seed);
    if (std::ranges::find(arms, arm.name(), &Arm::name) == arms.end()) arms.push_back(arm);
  };
  // Seed by seed, so that a survey that is stopped has seen every method.
  for (int64_t seed = 0; seed < seeds; ++seed) {
    for (const std::string& text : methods) {
      const Arm arm = parse_method(text, settings, memory);
      if (!arm.weights_from.empty()) {
        const Arm trained = parse_method(arm.weights_from, settings, 0);
        if (!trained.weights_from.empty()) {
          fail("methods: " + text + ": weights: expected a method that is trained, but got " +
               arm.weights_from);
        }
        add(trained, seed);
      }
      add(arm, seed);
    }
  }
  return arms;
}

}  // namespace sextant::lab
