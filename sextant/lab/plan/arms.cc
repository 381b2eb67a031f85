// A label, NAME:OPTION=VALUE:..., becomes an arm: the survey's own options are taken from it,
// lengths are resolved, and a stretch of rope reads the weights of the trained one.
#include "sextant/lab/plan/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/plan/stretches.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

constexpr const char* kMemory = "memory";
constexpr const char* kTune = "tune";
constexpr const char* kCausal = "causal";
constexpr const char* kTwoStreams = "two_streams";
constexpr const char* kDrop = "drop_channels";
constexpr const char* kWeights = "weights";
constexpr const char* kOwn = "own";
constexpr const char* kLogN = "log-n";
constexpr const char* kAlienClock = "alien-clock";

// Methods that by default use the weights of a trained rope instead of training their own.
constexpr std::array<std::string_view, 7> kReaders = {
    "chunk", "dual-chunk", "leaky-rerope", "rerope", "self-extend", "streaming", "window"};
constexpr int64_t kMostTaken = int64_t{1} << 30, kMostMultiple = 1 << 16;

[[noreturn]] void refuse(const std::string& label, const char* option, const std::string& expected,
                         const auto& got) {
  fail(fmt::format("methods: {}: {}: expected {}, but got {}", label, option, expected, got));
}

// Lengths on which options may depend.
struct Lengths {
  int64_t training = 0, longest = 0;
};

Lengths lengths_of(const Settings& settings, Task task) {
  return {training_of(settings, task).length, longest_of(settings, task)};
}

// The options of rope for a method name that stands for rope with a stretch or a query scale and
// uses the weights of a trained rope. The stretch maps the longest tested length to the training
// length. Null for other names.
json named_rope(const std::string& name, const Lengths& lengths) {
  if (name == kLogN) return {{"query_scale", "logn"}};
  json stretch = stretch_named(
      name, static_cast<double>(lengths.longest) / static_cast<double>(lengths.training));
  return stretch.is_null() ? stretch : json{{"stretch", std::move(stretch)}};
}

// Options that the survey chooses, because they depend on the lengths or on the decoder's
// initialisation.
json survey_options(const std::string& method, const Lengths& lengths, int64_t memory) {
  const int64_t reach = std::max(lengths.longest, lengths.training + memory);
  // One row per tested position; rows past L keep their initial values. Rows start at the scale of
  // the embeddings: the loss at L is 1.88 nats with init_std 0.7, and 2.22 with 0.1.
  if (method == "learned") return {{"rows", reach}, {"init_std", 0.7}};
  if (method == "emd") return {{"rows", reach}};
  if (method == "tupe") return {{"max_positions", reach}};
  if (method == "relative-key") return {{"max_position_embeddings", reach}};
  // T5 replaces 1/sqrt(d) by a smaller initialisation of W_q; this decoder initialises all matrices
  // alike and scales the scores instead.
  if (method == "t5") return {{"scaled", true}};
  return piecewise_options(method, lengths.training, reach);
}

std::string with_memory(const std::string& label, int64_t memory) {
  return memory > 0 ? label + ":" + kMemory + "=" + std::to_string(memory) : label;
}

// Parses a length relative to the training length, which differs between text and pairs: "L", "2L",
// "L/4", "3L/4". Returns nullopt for other strings.
std::optional<int64_t> multiple_of(int64_t training, std::string_view value) {
  int64_t times = 1, parts = 1;
  const char* at = value.data();
  const char* const end = at + value.size();
  if (at != end && *at != 'L') at = std::from_chars(at, end, times).ptr;
  if (at == end || *at != 'L') return {};
  if (++at != end) {
    if (*at != '/') return {};
    const auto [stop, error] = std::from_chars(at + 1, end, parts);
    if (error != std::errc{} || stop != end) return {};
  }
  if (times < 1 || times > kMostMultiple || parts < 1) return {};
  return training * times / parts;
}

// Removes one of the survey's own options from the method's options and returns it, if present.
std::optional<int64_t> taken(json& options, const char* name, const std::string& label) {
  if (!options.contains(name)) return {};
  const json value = options.at(name);
  options.erase(name);
  if (!value.is_number_unsigned() || value > kMostTaken)
    refuse(label, name, fmt::format("0 to {}", kMostTaken), value.dump());
  return value.get<int64_t>();
}

// Removes an option that only tasks with attention in both directions have, and returns its value.
bool taken_flag(json& options, const char* name, Task task, const std::string& label) {
  if (!options.contains(name) || task == Task::kText || task == Task::kPairs) return false;
  const json value = options.at(name);
  options.erase(name);
  if (!value.is_boolean()) refuse(label, name, "true or false", value.dump());
  return value.get<bool>();
}

// The method that the option "of" names.
std::string inner_method(const std::string& label, const json& options) {
  const json of = options.value("of", json("rope"));
  if (of.is_string()) return of.get<std::string>();
  refuse(label, "of", "a method's name", of.dump());
}

// Removes the option "weights". Returns the label of the method whose weights are used; "" for its
// own.
std::string weights_of(const std::string& label, bool reads, json& options) {
  std::string of = reads ? inner_method(label, options) : kOwn;
  if (!options.contains(kWeights)) return of == kOwn ? "" : of;
  const json given = options.at(kWeights);
  options.erase(kWeights);
  if (!given.is_string())
    refuse(label, kWeights, fmt::format("a method's name or {}", kOwn), given.dump());
  return given == kOwn ? "" : given.get<std::string>();
}

// The request without the option drop_channels. Its label lacks the option, too; a label that does
// not name it is replaced by the method and its other options.
ArmRequest with_all_channels(const ArmRequest& request) {
  json options = json::parse(request.options);
  if (!options.contains(kDrop)) return request;
  const std::string option = fmt::format(":{}={}", kDrop, options.at(kDrop).dump());
  options.erase(kDrop);
  ArmRequest whole{.label = request.label, .method = request.method, .options = options.dump()};
  if (const size_t at = whole.label.find(option); at != std::string::npos) {
    whole.label.erase(at, option.size());
    return whole;
  }
  whole.label = request.method;
  for (const auto& [name, value] : options.items())
    whole.label +=
        fmt::format(":{}={}", name, value.is_string() ? value.get<std::string>() : value.dump());
  return whole;
}

// Adds the checksum of the file of an encoding of one's own.
void add_source(const Arm& arm, json& options) {
  if (options.contains(kOwnSource))
    fail(fmt::format("methods: {}: {}: expected no such option, as it is the checksum of the file",
                     arm.label, kOwnSource));
  if (arm.drop_channels > 0)
    refuse(arm.label, kDrop, "0, as it adds nothing to the input", arm.drop_channels);
  options[kOwnSource] = source_of_own_method(arm.method);
}

// Makes an arm without a seed, whose weights_from is a label instead of an arm name.
Arm arm_of(const ArmRequest& request, const Settings& settings, Task task, const ArmDefaults& all) {
  const Lengths lengths = lengths_of(settings, task);
  json given = json::parse(request.options);
  for (auto& [name, value] : given.items()) {
    if (!value.is_string()) continue;
    const auto multiple = multiple_of(lengths.training, value.get_ref<const std::string&>());
    if (multiple) value = static_cast<uint64_t>(*multiple);  // as JSON has counts: memory=L
  }
  check_label("methods", request.label);
  Arm arm{.label = request.label, .method = request.method, .task = task};
  const auto memory = taken(given, kMemory, arm.label);
  arm.memory = memory.value_or(all.memory);
  if (!memory) arm.label = with_memory(arm.label, arm.memory);
  arm.tune = taken(given, kTune, arm.label).value_or(0);
  arm.causal = taken_flag(given, kCausal, task, arm.label);
  arm.two_streams = taken_flag(given, kTwoStreams, task, arm.label);
  if (arm.causal && arm.two_streams)
    fail(fmt::format("methods: {}: two_streams: expected false with causal=true", arm.label));
  if (arm.memory > 0 && settings.objective == Objective::kMasked)
    refuse(arm.label, kMemory, "0 with masked bytes", arm.memory);
  arm.drop_channels = taken(given, kDrop, arm.label).value_or(0);

  const json named = named_rope(arm.method, lengths);
  const bool reads = !named.is_null() || std::ranges::find(kReaders, arm.method) != kReaders.end();
  json options = survey_options(arm.method, lengths, arm.memory);
  if (!named.is_null()) {
    options = named;
    arm.method = "rope";
  } else if (arm.method == kAlienClock) {
    options = {{"system", "alien"}};
    arm.method = "clock";
  }
  options.update(given);
  if (is_own_method(arm.method)) add_source(arm, options);
  std::string of = weights_of(arm.label, reads, options);
  if (of.empty() && arm.drop_channels > 0) of = with_all_channels(request).label;
  if (is_own_method(of))
    refuse(arm.label, kWeights, "a built-in method, whose weights this program can read", of);
  if (!of.empty()) arm.weights_from = with_memory(of, arm.memory);
  if (arm.method == "window" || arm.method == "chunk") {
    const json inner = survey_options(inner_method(arm.label, options), lengths, arm.memory);
    if (!inner.empty() && !options.contains("options")) options["options"] = inner;
  }
  if (arm.tune > 0 && arm.drop_channels > 0)
    refuse(arm.label, kTune, fmt::format("0 with {}, which is a test", kDrop), arm.tune);
  if (arm.tune > 0 && arm.weights_from.empty())
    refuse(arm.label, kTune, "0, as it has no weights of another to go on from", arm.tune);
  arm.options = options.dump();
  return arm;
}

// The same arm, trained for `steps` more steps at the longest length from the weights of `of`.
Arm tuned(Arm arm, const std::string& of, int64_t steps) {
  arm.weights_from = of;
  arm.tune = steps;
  arm.label += fmt::format(":{}={}", kTune, steps);
  return arm;
}

}  // namespace

std::vector<std::string> default_methods(Objective objective) {
  if (objective == Objective::kMasked) return {"none", "sinusoidal", "alibi", "t5", "shaw"};
  std::vector<std::string> methods{"none", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw"};
  // Dynamic stretches rotate all keys again for each query beyond L, so a test takes several times
  // as long as that of another stretch. They are tested only on request.
  for (const std::string& name : stretches())
    if (!name.starts_with("dynamic-")) methods.push_back(name);
  return methods;
}

std::vector<std::string> stretches() {
  std::vector<std::string> names = stretch_names();
  for (const char* reader : {kLogN, "rerope", "rerope:log_n=L", "rerope:window=L", "leaky-rerope",
                             "self-extend", "window", "chunk"}) {
    names.emplace_back(reader);
  }
  return names;
}

ArmRequest request_of(const std::string& text, const std::string& where) {
  json options = json::object();
  const size_t name_end =
      std::min(is_own_method(text) ? end_of_own_method(text) : text.find(':'), text.size());
  for (size_t end = name_end; end < text.size();) {
    const size_t begin = end + 1;
    end = std::min(text.find(':', begin), text.size());
    const std::string option = text.substr(begin, end - begin);
    const size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos)
      fail(fmt::format("{}: {}: expected NAME:OPTION=VALUE, but got {}", where, text, option));
    const std::string name = option.substr(0, equals);
    const std::string words = option.substr(equals + 1);
    json value = json_or_word(words);
    if (options.contains(name))
      fail(fmt::format("{}: {}: {}: expected it once, but got {} and {}", where, text, name,
                       options[name].dump(), value.dump()));
    options[name] = std::move(value);
  }
  // Of a file the label has no folders.
  const size_t slash = is_own_method(text) ? text.rfind('/', name_end) : text.npos;
  return {.label = slash == text.npos ? text : text.substr(slash + 1),
          .method = text.substr(0, name_end),
          .options = options.dump()};
}

std::vector<Arm> make_arms(std::span<const ArmRequest> requests, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all) {
  if (requests.empty()) fail("methods: expected at least one, but got none");
  if (seeds < 1) fail("seeds: expected at least 1, but got " + std::to_string(seeds));
  if (all.memory < 0) fail("memory: expected at least 0, but got " + std::to_string(all.memory));
  if (all.tune < 0) fail("tune: expected at least 0, but got " + std::to_string(all.tune));
  std::vector<Arm> arms;
  const auto add = [&](Arm arm, int64_t seed) {
    arm.seed = static_cast<uint64_t>(seed);
    if (!arm.weights_from.empty())
      arm.weights_from = Arm::name_of(arm.weights_from, arm.task, arm.seed);
    const auto same = std::ranges::find(arms, arm.name(), &Arm::name);
    if (same == arms.end()) {
      arms.push_back(arm);
    } else if (same->method != arm.method) {
      fail(fmt::format(
          "methods: {}: expected one label for each method (--arms names them), but got {} and {}",
          arm.label, same->method, arm.method));
    }
  };
  // The arm whose weights are used: a requested method with that label, or else the method of that
  // name.
  const auto trained_for = [&](const Arm& arm, const ArmRequest& request) {
    const auto asked = std::ranges::find(requests, arm.weights_from, &ArmRequest::label);
    const bool found = asked != requests.end();
    const ArmRequest whole = with_all_channels(request);
    const ArmRequest wanted = found                             ? *asked
                              : whole.label == arm.weights_from ? whole
                                                                : request_of(arm.weights_from);
    Arm trained = arm_of(wanted, settings, arm.task, found ? all : ArmDefaults{});
    if (trained.causal != arm.causal || trained.two_streams != arm.two_streams)
      refuse(arm.label, kWeights,
             fmt::format("a method with the same {} and {}", kCausal, kTwoStreams),
             arm.weights_from);
    if (!trained.weights_from.empty())
      refuse(arm.label, kWeights, "a method that is trained", arm.weights_from);
    return trained;
  };
  std::vector<Task> tasks{text_task(settings)};
  if (settings.retrieval.steps > 0) tasks.push_back(small_task(settings));
  // The outer loop is over seeds, so an interrupted survey has tested every method.
  for (int64_t seed = 0; seed < seeds; ++seed) {
    for (const Task task : tasks) {
      for (const ArmRequest& request : requests) {
        const Arm arm = arm_of(request, settings, task, all);
        // Sequences of small tasks are processed at once, so there is no earlier segment to cache,
        // and their marks are no permuted tokens.
        if (!is_on_text(task) && (arm.memory > 0 || arm.two_streams)) continue;
        if (arm.weights_from.empty()) {
          add(arm, seed);
          continue;
        }
        const Arm trained = trained_for(arm, request);
        add(trained, seed);
        add(arm, seed);
        if (all.tune == 0 || arm.tune > 0 || arm.drop_channels > 0) continue;
        add(tuned(trained, trained.label, all.tune), seed);
        add(tuned(arm, trained.label, all.tune), seed);
      }
    }
  }
  return arms;
}

std::vector<Arm> with_dropped_arms(std::span<const Arm> arms, std::span<const int64_t> counts,
                                   const std::function<int64_t(const Arm&)>& added_channels) {
  for (const int64_t count : counts) {
    if (count < 1) fail(fmt::format("{}: expected at least 1, but got {}", kDrop, count));
  }
  std::vector<Arm> all;
  const auto known = [&](std::span<const Arm> list, const Arm& arm) {
    return std::ranges::find(list, arm.name(), &Arm::name) != list.end();
  };
  for (const Arm& arm : arms) {
    if (!known(all, arm)) all.push_back(arm);
    if (!arm.weights_from.empty() || added_channels(arm) == 0) continue;
    for (const int64_t count : counts) {
      Arm dropped = arm;
      dropped.label += fmt::format(":{}={}", kDrop, count);
      dropped.weights_from = arm.name();
      dropped.drop_channels = count;
      if (!known(all, dropped) && !known(arms, dropped)) all.push_back(dropped);
    }
  }
  return all;
}

std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all) {
  std::vector<ArmRequest> requests;
  requests.reserve(methods.size());
  for (const std::string& text : methods) requests.push_back(request_of(text));
  return make_arms(requests, seeds, settings, all);
}

}  // namespace sextant::lab
