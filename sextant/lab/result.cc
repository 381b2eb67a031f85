#include "sextant/lab/result.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"
#include "sextant/models/json_fields.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

Mean mean_from(const json& object) {
  JsonFields fields(object, "result: mean");
  Mean mean;
  fields.read("mean", mean.value);
  fields.read("standard_error", mean.error);
  fields.finish();
  return mean;
}

json as_json(const Mean& mean) { return {{"mean", mean.value}, {"standard_error", mean.error}}; }

}  // namespace

void to_json(json& out, const ArmResult& result) {
  json lengths = json::array();
  for (const AtLength& at : result.lengths) {
    lengths.push_back({{"length", at.length},
                       {"loss", as_json(at.loss)},
                       {"sliding", as_json(at.sliding)},
                       {"loss_change", as_json(at.loss_change)},
                       {"sliding_change", as_json(at.sliding_change)}});
  }
  json retrieval = json::array();
  for (const AtDistance& at : result.retrieval) {
    retrieval.push_back(
        {{"length", at.length}, {"distance", at.distance}, {"accuracy", as_json(at.accuracy)}});
  }
  json attention = json::array();
  for (const AttentionAt& at : result.attention) {
    attention.push_back(
        {{"length", at.length}, {"layer", at.layer}, {"entropy", at.entropy}, {"span", at.span}});
  }
  out = {{"arm", result.arm},
         {"diverged", result.diverged},
         {"message", result.message},
         {"weights", result.weights},
         {"train_seconds", result.train_seconds},
         {"test_seconds", result.test_seconds},
         {"lengths", lengths},
         {"loss_at", result.loss_at},
         {"attention", attention},
         {"retrieval", retrieval},
         {"train_loss", result.train_loss},
         {"machine", result.machine}};
}

void from_json(const json& json, ArmResult& result) {
  JsonFields fields(json, "result");
  result.arm = fields.at("arm").get<Arm>();
  fields.read("diverged", result.diverged);
  fields.read("message", result.message);
  fields.read("weights", result.weights);
  fields.read("train_seconds", result.train_seconds);
  fields.read("test_seconds", result.test_seconds);
  for (const nlohmann::json& entry : fields.at("lengths")) {
    JsonFields at(entry, "result: lengths");
    AtLength length;
    at.read("length", length.length);
    length.loss = mean_from(at.at("loss"));
    length.sliding = mean_from(at.at("sliding"));
    length.loss_change = mean_from(at.at("loss_change"));
    length.sliding_change = mean_from(at.at("sliding_change"));
    at.finish();
    result.lengths.push_back(length);
  }
  fields.read("loss_at", result.loss_at);
  for (const nlohmann::json& entry : fields.at("attention")) {
    JsonFields at(entry, "result: attention");
    AttentionAt found;
    at.read("length", found.length);
    at.read("layer", found.layer);
    at.read("entropy", found.entropy);
    at.read("span", found.span);
    at.finish();
    result.attention.push_back(found);
  }
  for (const nlohmann::json& entry : fields.at("retrieval")) {
    JsonFields at(entry, "result: retrieval");
    AtDistance found;
    at.read("length", found.length);
    at.read("distance", found.distance);
    found.accuracy = mean_from(at.at("accuracy"));
    at.finish();
    result.retrieval.push_back(found);
  }
    if (!at.sliding_blocks.empty()) lengths.back()["sliding_blocks"] = at.sliding_blocks;
  fields.read("train_loss", result.train_loss);
  fields.read("machine", result.machine);
  fields.finish();
}

    if (!at.right.empty()) retrieval.back()["right"] = at.right;
json read_json(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    fail(path.string() + ": expected JSON, but byte " + std::to_string(error.byte) + " is not");
  }
}

void write_json(const std::filesystem::path& path, const json& json) {
  write_file(path, json.dump(2) + "\n");
}

}  // namespace sextant::lab
    if (entry.contains("sliding_blocks")) at.read("sliding_blocks", length.sliding_blocks);
    if (entry.contains("right")) at.read("right", found.right);
