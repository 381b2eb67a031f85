// Each row of the settings' table has a member, a range and a place in JSON: reading, writing and
// the checks of ranges are loops over the rows. Rules that compare several settings follow.
#include "sextant/lab/plan/settings.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>
#include <type_traits>
#include <variant>

#include "sextant/base/error.h"
#include "sextant/base/names.h"
#include "sextant/base/printable.h"
#include "sextant/files/json_record.h"
#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

template <class T>
std::string text(T value) {
  return json(value).dump();
}

template <class T>
void within(const std::string& name, T value, T low, T high) {
  if (!(value >= low && value <= high))
    fail("settings: " + name + ": expected " + text(low) + " to " + text(high) + ", but got " +
         text(value));
}

constexpr double kTuningRate = 0.25;
constexpr const char* kModelPart = "model";

constexpr Names<Task, 4> kTasks{{{Task::kText, "text"},
                                 {Task::kPairs, "pairs"},
                                 {Task::kMasked, "masked"},
                                 {Task::kDirection, "direction"}}};
constexpr Names<Objective, 2> kObjectives{
    {{Objective::kCausal, "causal"}, {Objective::kMasked, "masked"}}};

std::string path_of(const Setting& row) {
  return row.part.empty() ? row.name : std::string(row.part) + "." + row.name;
}

// Checks each setting of a part against its own range.
void check_ranges(Settings settings, std::string_view part) {
  for (const Setting& row : settings_table(settings)) {
    if (row.part != part || !row.range) continue;
    const auto check = [&](const auto* value) {
      using Number = std::remove_cvref_t<decltype(*value)>;
      if constexpr (std::is_arithmetic_v<Number>)
        within<Number>(path_of(row), *value, static_cast<Number>(row.range->low),
                       static_cast<Number>(row.range->high));
    };
    std::visit(check, row.member);
  }
}

void check_rising(const char* name, const std::vector<int64_t>& lengths) {
  if (std::ranges::is_sorted(lengths, std::less_equal<>{})) return;
  fail(std::string("settings: ") + name + ": expected each above the one before, but got " +
       text(lengths));
}

void check_training(const Settings& settings) {
  check_ranges(settings, "training");
  const TrainingOptions& training = settings.training;
  within<int64_t>("training.bytes", training.bytes, training.batch * training.length,
                  kMostSetting * kMostSetting);
}

void check_test(const Settings& settings) {
  check_ranges(settings, "test");
  const TestOptions& test = settings.test;
  const int64_t train_length = settings.training.length;
  if (test.lengths.empty()) fail("settings: test.lengths: expected at least one, but got none");
  // A shorter sequence would not contain the bytes on which a sliding window is scored.
  for (const int64_t length : test.lengths)
    within<int64_t>("test.lengths", length, (train_length + 1) / 2, kMostSetting);
  check_rising("test.lengths", test.lengths);
  // Surveys report the change of the loss against that at L.
  if (std::ranges::find(test.lengths, train_length) == test.lengths.end())
    fail("settings: test.lengths: expected the training length " + std::to_string(train_length) +
         " among them, but got " + text(test.lengths));
  for (const int64_t length : test.lengths) {
    // Blocks of the longest length are cut into whole pieces of each shorter length, so all lengths
    // are scored on the same bytes.
    if (test.longest() % length != 0)
      fail("settings: test.lengths: expected divisors of the longest, " +
           std::to_string(test.longest()) + ", but got " + std::to_string(length));
  }
  within<int64_t>("test.bin", test.bin, 1, test.longest());
  if (test.longest() % test.bin != 0)
    fail("settings: test.bin: expected a divisor of the longest length, " +
         std::to_string(test.longest()) + ", but got " + std::to_string(test.bin));
  if (settings.objective == Objective::kMasked) {
    // Each bin then has a byte that the pass over its block hides.
    within<int64_t>("test.bin", test.bin, kMaskPasses, test.longest());
  }
}

void check_retrieval(const Settings& settings) {
  const RetrievalOptions& retrieval = settings.retrieval;
  if (retrieval.steps == 0) return;
  check_ranges(settings, "retrieval");
  check_rising("retrieval.lengths", retrieval.lengths);
  if (retrieval.lengths.empty() || retrieval.lengths.front() != retrieval.length)
    fail("settings: retrieval.lengths: expected the training length " +
         std::to_string(retrieval.length) + " as the first, but got " + text(retrieval.lengths));
  within<int64_t>("retrieval.lengths", retrieval.longest(), retrieval.length, kMostSetting);
  sextant::check(model_of(settings, small_task(settings)));
}

void add_leaves(const json& value, const std::string& path, Leaves& leaves) {
  if (!value.is_object()) {
    leaves.emplace_back(path, value);
    return;
  }
  for (const auto& item : value.items())
    add_leaves(item.value(), path.empty() ? item.key() : path + "." + item.key(), leaves);
}

constexpr std::string_view kCuda = "cuda", kNumbered = "cuda:";
constexpr size_t kDigits = 2;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

const char* name(Task task) { return name_in(kTasks, task); }

const char* name(Objective objective) { return name_in(kObjectives, objective); }
Objective objective_named(const std::string& name) {
  return value_named(kObjectives, "objective", name);
}

bool is_on_text(Task task) { return task == Task::kText || task == Task::kMasked; }

Task text_task(const Settings& settings) {
  return settings.objective == Objective::kMasked ? Task::kMasked : Task::kText;
}

Task small_task(const Settings& settings) {
  return settings.objective == Objective::kMasked ? Task::kDirection : Task::kPairs;
}

std::string scored_bytes(const Settings& settings) {
  const char* const where = settings.objective == Objective::kCausal ? "last" : "middle";
  return std::string(where) + " " + std::to_string(settings.training.length / 2) + " bytes";
}

std::string Arm::name_of(const std::string& label, Task task, uint64_t seed) {
  const std::string of_task = task == Task::kText ? "" : std::string("-") + lab::name(task);
  return label + of_task + "-" + std::to_string(seed);
}

void check(const Settings& settings) {
  sextant::check(settings.model);
  const DecoderOptions& model = settings.model;
  if (!model.causal || model.padding >= 0 || model.query_token >= 0) {
    fail(
        "settings: model: causal, padding, query_token: expected true, -1, -1, as the objective "
        "decides them, but got " +
        std::string(model.causal ? "true, " : "false, ") + std::to_string(model.padding) + ", " +
        std::to_string(model.query_token));
  }
  check_training(settings);
  check_test(settings);
  check_retrieval(settings);
  check_ranges(settings, "");
  check_device_name(settings.device);
}

DecoderOptions model_of(const Settings& settings, Task task) {
  DecoderOptions model = settings.model;
  if (task == Task::kText) return model;
  model.causal = task == Task::kPairs;
  if (task == Task::kMasked) {
    model.vocabulary = kMaskedVocabulary;
    model.padding = kPaddingToken;
    return model;
  }
  const RetrievalOptions& retrieval = settings.retrieval;
  model.vocabulary = task == Task::kPairs ? kPairVocabulary : kDirectionVocabulary;
  model.layers = retrieval.layers;
  model.mlp_width = std::max<int64_t>(1, model.mlp_width * retrieval.width / model.width);
  model.width = retrieval.width;
  return model;
}

DecoderOptions model_of(const Settings& settings, const Arm& arm) {
  DecoderOptions model = model_of(settings, arm.task);
  model.causal = model.causal || arm.causal;
  if (arm.two_streams) model.query_token = kMaskToken;
  return model;
}

TrainingOptions training_of(const Settings& settings, Task task) {
  TrainingOptions training = settings.training;
  if (is_on_text(task)) return training;
  const RetrievalOptions& retrieval = settings.retrieval;
  training.length = retrieval.length;
  training.batch = retrieval.batch;
  training.bytes = retrieval.steps * retrieval.batch * retrieval.length;
  training.learning_rate = retrieval.learning_rate;
  return training;
}

TrainingOptions training_of(const Settings& settings, const Arm& arm) {
  TrainingOptions training = training_of(settings, arm.task);
  if (arm.tune == 0) return training;
  const int64_t tokens = training.batch * training.length;
  training.length = longest_of(settings, arm.task);
  training.batch = std::max<int64_t>(1, tokens / training.length);
  training.bytes = arm.tune * training.batch * training.length;
  training.learning_rate *= kTuningRate;
  return training;
}

int64_t longest_of(const Settings& settings, Task task) {
  return is_on_text(task) ? settings.test.longest() : settings.retrieval.longest();
}

std::vector<int64_t> distances_in(int64_t length, const RetrievalOptions& options) {
  const int64_t step = options.length / 8;
  std::vector<int64_t> distances;
  for (int64_t distance = step; distance <= length / 2; distance *= 2)
    distances.push_back(distance);
  distances.push_back(length - step);
  return distances;
}

std::vector<int64_t> asked_distances(Task task, int64_t length, const RetrievalOptions& options) {
  if (task != Task::kDirection) return distances_in(length, options);
  std::vector<int64_t> gaps(kMostGap);
  std::iota(gaps.begin(), gaps.end(), 1);
  return gaps;
}

int64_t near_distance(const RetrievalOptions& options) {
  const std::vector<int64_t> distances = distances_in(options.length, options);
  return distances.size() > 1 ? distances[distances.size() - 2] : distances.back();
}

int64_t far_distance(int64_t length, const RetrievalOptions& options) {
  return distances_in(length, options).back();
}

void to_json(json& json, const Settings& settings) {
  Settings copy = settings;
  json = {{"model", settings.model}};
  for (const Setting& row : settings_table(copy)) {
    if (row.part == kModelPart) continue;
    auto& object = row.part.empty() ? json : json[std::string(row.part)];
    std::visit([&](const auto* value) { object[row.name] = *value; }, row.member);
  }
  // Manifests stay as they were before there was another objective or device.
  if (settings.objective != Objective::kCausal) json["objective"] = name(settings.objective);
  if (settings.device == kCpu) json.erase("device");
}

void from_json(const json& json, Settings& settings) {
  JsonFields fields(json, "settings");
  settings.model = fields.at(kModelPart).get<DecoderOptions>();
  const std::vector<Setting> table = settings_table(settings);
  const auto read = [&](const JsonFields& object, std::string_view part) {
    for (const Setting& row : table) {
      if (row.part != part) continue;
      if (row.name == std::string_view("device") && !object.has("device")) continue;
      std::visit([&](auto* value) { object.read(row.name, *value); }, row.member);
    }
    object.finish();
  };
  for (const char* part : {"training", "test", "retrieval"})
    read(JsonFields(fields.at(part), std::string("settings: ") + part), part);
  if (fields.has("objective")) {
    std::string objective;
    fields.read("objective", objective);
    settings.objective = objective_named(objective);
  }
  read(fields, "");
  check(settings);
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, Arm>& arm) {
  io("label", arm.label)("method", arm.method)("seed", arm.seed)("memory", arm.memory);
  if constexpr (Io::kWrites) {
    io.at["options"] = json::parse(arm.options);
  } else {
    arm.options = io.at.object("options").dump();
  }
  io("tune", arm.tune)("weights_from", arm.weights_from).named("task", arm.task, kTasks, "task");
  // Arms of older surveys lack these fields.
  io.unless("causal", arm.causal, false).unless("two_streams", arm.two_streams, false);
  io.unless("drop_channels", arm.drop_channels, 0);
}

void to_json(json& json, const Arm& arm) { write_record(json, arm); }

void from_json(const json& json, Arm& arm) {
  read_record(json, "arm", arm);
  check_label("arm", arm.label);
}

void check_label(const std::string& where, const std::string& label) {
  const std::string shown = printable(label);
  if (label.empty() || shown != label)
    fail(where + ": label: expected a name without control characters, but got \"" + shown + "\"");
}

Leaves leaves_of(const json& object) {
  Leaves leaves;
  add_leaves(object, "", leaves);
  return leaves;
}

std::vector<std::string> differences(const json& there, const json& asked) {
  const auto map_of = [](const Leaves& leaves) {
    return std::map<std::string, json>(leaves.begin(), leaves.end());
  };
  const std::map<std::string, json> before = map_of(leaves_of(there)),
                                    now = map_of(leaves_of(asked));
  std::set<std::string> paths;
  for (const auto& [path, value] : before) paths.insert(path);
  for (const auto& [path, value] : now) paths.insert(path);
  std::vector<std::string> lines;
  for (const std::string& path : paths) {
    const auto is = before.find(path), would = now.find(path);
    if (is != before.end() && would != now.end() && is->second == would->second) continue;
    const auto shown = [](const auto& found, const auto& all) {
      return found == all.end() ? std::string("nothing") : found->second.dump();
    };
    lines.push_back(path + ": " + shown(is, before) + " there, " + shown(would, now) +
                    " asked for");
  }
  return lines;
}

void check_device_name(const std::string& name) {
  if (name == kCpu || name == kCuda) return;
  if (!name.starts_with(kNumbered)) fail("device: expected cpu or cuda, but got " + name);
  if (!is_number(std::string_view(name).substr(kNumbered.size())))
    fail("device: expected the number of a GPU after cuda:, but got " + name);
}

int device_index(const std::string& name) {
  return name.starts_with(kNumbered) ? std::stoi(name.substr(kNumbered.size())) : 0;
}

}  // namespace sextant::lab
