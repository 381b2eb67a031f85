#include "sextant/lab/settings.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/error.h"
#include "sextant/models/json_fields.h"

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

// Far above what a laboratory of minutes can use, and far below where products of two overflow.
constexpr int64_t kMost = int64_t{1} << 30;

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
  // Shorter ones would not hold the bytes that a sliding window is scored on.
  for (const int64_t length : test.lengths) {
    within<int64_t>("test.lengths", length, (train_length + 1) / 2, kMost);
  }
  if (!std::ranges::is_sorted(test.lengths, std::less_equal<>{})) {
    fail("settings: test.lengths: expected each above the one before, but got " +
         text(test.lengths));
  }
  // The change against L is what a survey is for.
  if (std::ranges::find(test.lengths, train_length) == test.lengths.end()) {
    fail("settings: test.lengths: expected the training length " + std::to_string(train_length) +
         " among them, but got " + text(test.lengths));
  }
  for (const int64_t length : test.lengths) {
    // The longest texts are cut into whole texts of each shorter length: the same bytes for all.
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

void check(const Settings& settings) {
  sextant::check(settings.model);
  check(settings.training);
  check(settings.test, settings.training.length);
  within<int>("threads", settings.threads, 1, 1024);
}

void to_json(json& json, const Settings& settings) {
  const TrainingOptions& training = settings.training;
  const TestOptions& test = settings.test;
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
          {"threads", settings.threads}};
}

void from_json(const json& json, Settings& settings) {
  JsonFields fields(json, "settings");
  settings.model = fields.at("model").get<DecoderOptions>();
  fields.read("threads", settings.threads);

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

  fields.finish();
  check(settings);
}

void to_json(json& json, const Arm& arm) {
  json = {{"label", arm.label}, {"method", arm.method}, {"options", json::parse(arm.options)},
          {"seed", arm.seed},   {"memory", arm.memory}, {"weights_from", arm.weights_from}};
}

void from_json(const json& json, Arm& arm) {
  JsonFields fields(json, "arm");
  fields.read("label", arm.label);
  fields.read("method", arm.method);
  arm.options = fields.at("options").dump();
  fields.read("seed", arm.seed);
  fields.read("memory", arm.memory);
  fields.read("weights_from", arm.weights_from);
  fields.finish();
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
