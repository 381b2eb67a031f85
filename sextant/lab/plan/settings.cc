#include "sextant/lab/plan/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/printable.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/data/direction_task.h"
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
void within(const char* name, T value, T low, T high) {
  if (!(value >= low && value <= high)) {
    fail(std::string("settings: ") + name + ": expected " + text(low) + " to " + text(high) +
         ", but got " + text(value));
  }
}

// Far above the needs of surveys that run for minutes; the product of two values does not overflow.
constexpr int64_t kMost = int64_t{1} << 30;
constexpr double kTuningRate = 0.25;

template <class T, size_t N>
using Names = std::array<std::pair<T, const char*>, N>;

constexpr Names<Task, 4> kTasks{{{Task::kText, "text"},
                                 {Task::kPairs, "pairs"},
                                 {Task::kMasked, "masked"},
                                 {Task::kDirection, "direction"}}};
constexpr Names<Objective, 2> kObjectives{
    {{Objective::kCausal, "causal"}, {Objective::kMasked, "masked"}}};

template <class T, size_t N>
const char* name_in(const Names<T, N>& names, T value) {
  const auto* const found = std::ranges::find(names, value, &std::pair<T, const char*>::first);
  return found->second;
}

template <class T, size_t N>
T named_in(const Names<T, N>& names, const char* field, const std::string& name) {
  std::string known;
  for (const auto& [value, its_name] : names) {
    if (name == its_name) return value;
    known += (known.empty() ? "" : ", ") + std::string(its_name);
  }
  fail(std::string(field) + ": expected one of " + known + ", but got " + name);
}

void check(const TrainingOptions& training) {
  within<int64_t>("training.length", training.length, 2, kMost);
  within<int64_t>("training.batch", training.batch, 1, kMost);
  within<int64_t>("training.bytes", training.bytes, training.batch * training.length,
                  kMost * kMost);
  within<double>("training.learning_rate", training.learning_rate, 0, 100);
  within<double>("training.warmup", training.warmup, 0, 1);
  within<double>("training.beta1", training.beta1, 0, 0.999999);
  within<double>("training.beta2", training.beta2, 0, 0.999999);
  within<double>("training.weight_decay", training.weight_decay, 0, 100);
  within<double>("training.clip", training.clip, 1e-9, 1e9);
}

void check(const TestOptions& test, int64_t train_length) {
  if (test.lengths.empty()) fail("settings: test.lengths: expected at least one, but got none");
  // A shorter sequence would not contain the bytes on which a sliding window is scored.
  for (const int64_t length : test.lengths) {
    within<int64_t>("test.lengths", length, (train_length + 1) / 2, kMost);
  }
  if (!std::ranges::is_sorted(test.lengths, std::less_equal<>{})) {
    fail("settings: test.lengths: expected each above the one before, but got " +
         text(test.lengths));
  }
  // Surveys report the change of the loss against that at L.
  if (std::ranges::find(test.lengths, train_length) == test.lengths.end()) {
    fail("settings: test.lengths: expected the training length " + std::to_string(train_length) +
         " among them, but got " + text(test.lengths));
  }
  for (const int64_t length : test.lengths) {
    // Blocks of the longest length are cut into whole pieces of each shorter length, so all lengths
    // are scored on the same bytes.
    if (test.longest() % length != 0) {
      fail("settings: test.lengths: expected divisors of the longest, " +
           std::to_string(test.longest()) + ", but got " + std::to_string(length));
    }
  }
  within<int64_t>("test.blocks", test.blocks, 2, kMost);
  within<int64_t>("test.bin", test.bin, 1, test.longest());
  if (test.longest() % test.bin != 0) {
    fail("settings: test.bin: expected a divisor of the longest length, " +
         std::to_string(test.longest()) + ", but got " + std::to_string(test.bin));
  }
  within<double>("test.share", test.share, 0.001, 0.9);
}

void check(const Settings& settings, const RetrievalOptions& retrieval) {
  within<int64_t>("retrieval.steps", retrieval.steps, 0, kMost);
  if (retrieval.steps == 0) return;
  within<int64_t>("retrieval.batch", retrieval.batch, 1, kMost);
  within<int64_t>("retrieval.length", retrieval.length, kShortestPairText, kMost);
  within<double>("retrieval.learning_rate", retrieval.learning_rate, 0, 100);
  within<int64_t>("retrieval.texts", retrieval.texts, 2, kMost);
  if (!std::ranges::is_sorted(retrieval.lengths, std::less_equal<>{})) {
    fail("settings: retrieval.lengths: expected each above the one before, but got " +
         text(retrieval.lengths));
  }
  if (retrieval.lengths.empty() || retrieval.lengths.front() != retrieval.length) {
    fail("settings: retrieval.lengths: expected the training length " +
         std::to_string(retrieval.length) + " as the first, but got " + text(retrieval.lengths));
  }
  within<int64_t>("retrieval.lengths", retrieval.longest(), retrieval.length, kMost);
  sextant::check(model_of(settings, small_task(settings)));
}

void flatten(const json& value, const std::string& path, std::map<std::string, json>& leaves) {
  if (!value.is_object()) {
    leaves[path] = value;
    return;
  }
  for (const auto& item : value.items()) {
    flatten(item.value(), path.empty() ? item.key() : path + "." + item.key(), leaves);
  }
}

}  // namespace

const char* name(Task task) { return name_in(kTasks, task); }
Task task_named(const std::string& name) { return named_in(kTasks, "task", name); }

const char* name(Objective objective) { return name_in(kObjectives, objective); }
Objective objective_named(const std::string& name) {
  return named_in(kObjectives, "objective", name);
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
  check(settings.training);
  check(settings.test, settings.training.length);
  if (settings.objective == Objective::kMasked) {
    // Each bin then has a byte that the pass over its block hides.
    within<int64_t>("test.bin", settings.test.bin, kMaskPasses, settings.test.longest());
  }
  check(settings, settings.retrieval);
  within<int>("threads", settings.threads, 1, 1024);
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
  for (int64_t distance = step; distance <= length / 2; distance *= 2) {
    distances.push_back(distance);
  }
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
  const TrainingOptions& training = settings.training;
  const TestOptions& test = settings.test;
  const RetrievalOptions& retrieval = settings.retrieval;
  json = {{"model", settings.model},
          {"training",
           {{"length", training.length},
            {"bytes", training.bytes},
            {"batch", training.batch},
            {"learning_rate", training.learning_rate},
            {"warmup", training.warmup},
            {"beta1", training.beta1},
            {"beta2", training.beta2},
            {"weight_decay", training.weight_decay},
            {"clip", training.clip}}},
          {"test",
           {{"lengths", test.lengths},
            {"blocks", test.blocks},
            {"bin", test.bin},
            {"share", test.share}}},
          {"retrieval",
           {{"steps", retrieval.steps},
            {"batch", retrieval.batch},
            {"length", retrieval.length},
            {"learning_rate", retrieval.learning_rate},
            {"layers", retrieval.layers},
            {"width", retrieval.width},
            {"lengths", retrieval.lengths},
            {"texts", retrieval.texts}}},
          {"threads", settings.threads}};
  // Manifests stay as they were before there was another objective or device.
  if (settings.objective != Objective::kCausal) json["objective"] = name(settings.objective);
  if (settings.device != kCpu) json["device"] = settings.device;
}

void from_json(const json& json, Settings& settings) {
  JsonFields fields(json, "settings");
  settings.model = fields.at("model").get<DecoderOptions>();
  fields.read("threads", settings.threads);
  if (json.contains("device")) fields.read("device", settings.device);
  if (json.contains("objective")) {
    std::string objective;
    fields.read("objective", objective);
    settings.objective = objective_named(objective);
  }

  TrainingOptions& training = settings.training;
  JsonFields of_training(fields.at("training"), "settings: training");
  of_training.read("length", training.length);
  of_training.read("bytes", training.bytes);
  of_training.read("batch", training.batch);
  of_training.read("learning_rate", training.learning_rate);
  of_training.read("warmup", training.warmup);
  of_training.read("beta1", training.beta1);
  of_training.read("beta2", training.beta2);
  of_training.read("weight_decay", training.weight_decay);
  of_training.read("clip", training.clip);
  of_training.finish();

  TestOptions& test = settings.test;
  JsonFields of_test(fields.at("test"), "settings: test");
  of_test.read("lengths", test.lengths);
  of_test.read("blocks", test.blocks);
  of_test.read("bin", test.bin);
  of_test.read("share", test.share);
  of_test.finish();

  RetrievalOptions& retrieval = settings.retrieval;
  JsonFields of_retrieval(fields.at("retrieval"), "settings: retrieval");
  of_retrieval.read("steps", retrieval.steps);
  of_retrieval.read("batch", retrieval.batch);
  of_retrieval.read("length", retrieval.length);
  of_retrieval.read("learning_rate", retrieval.learning_rate);
  of_retrieval.read("layers", retrieval.layers);
  of_retrieval.read("width", retrieval.width);
  of_retrieval.read("lengths", retrieval.lengths);
  of_retrieval.read("texts", retrieval.texts);
  of_retrieval.finish();

  fields.finish();
  check(settings);
}

void to_json(json& json, const Arm& arm) {
  json = {{"label", arm.label},     {"method", arm.method}, {"options", json::parse(arm.options)},
          {"seed", arm.seed},       {"memory", arm.memory}, {"weights_from", arm.weights_from},
          {"task", name(arm.task)}, {"tune", arm.tune}};
  // Arms of older surveys lack these fields.
  if (arm.causal) json["causal"] = true;
  if (arm.two_streams) json["two_streams"] = true;
  if (arm.drop_channels > 0) json["drop_channels"] = arm.drop_channels;
}

void from_json(const json& json, Arm& arm) {
  JsonFields fields(json, "arm");
  fields.read("label", arm.label);
  check_label("arm", arm.label);
  fields.read("method", arm.method);
  arm.options = fields.object("options").dump();
  fields.read("seed", arm.seed);
  fields.read("memory", arm.memory);
  fields.read("tune", arm.tune);
  if (fields.has("drop_channels")) fields.read("drop_channels", arm.drop_channels);
  fields.read("weights_from", arm.weights_from);
  std::string task;
  fields.read("task", task);
  arm.task = task_named(task);
  if (json.contains("causal")) fields.read("causal", arm.causal);
  if (json.contains("two_streams")) fields.read("two_streams", arm.two_streams);
  fields.finish();
}

void check_label(const std::string& where, const std::string& label) {
  const std::string shown = printable(label);
  if (label.empty() || shown != label) {
    fail(where + ": label: expected a name without control characters, but got \"" + shown + "\"");
  }
}

std::vector<std::string> differences(const json& there, const json& asked) {
  std::map<std::string, json> before, now;
  flatten(there, "", before);
  flatten(asked, "", now);
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

}  // namespace sextant::lab
