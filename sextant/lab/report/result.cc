#include "sextant/lab/report/result.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/checked_json.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/write_file.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

// A mean, or an error, that was not kept is NaN.
Mean mean_from(const json& object) {
  Mean mean{.value = NAN, .error = NAN};
  if (object.is_null()) return mean;
  JsonFields fields(object, "result: mean");
  fields.read("mean", mean.value);
  if (fields.has("standard_error")) fields.read("standard_error", mean.error);
  fields.finish();
  return mean;
}

// JSON has no NaN; it is written as null.
double number_from(const json& value, const std::string& where) {
  if (!value.is_number() && !value.is_null()) {
    fail("result: " + where + ": expected numbers, but got " + value.dump());
  }
  return value.is_null() ? NAN : value.get<double>();
}

using Rows = std::vector<std::vector<double>>;

Rows rows_from(const json& rows, const std::string& name) {
  Rows result;
  for (const json& row : rows) {
    result.emplace_back();
    for (const json& value : row) {
      result.back().push_back(number_from(value, "pictures: " + name));
    }
  }
  return result;
}

json as_json(double value) { return std::isnan(value) ? json() : json(value); }

json as_json(const Rows& rows) {
  json out = json::array();
  for (const std::vector<double>& row : rows) {
    out.push_back(json::array());
    for (const double value : row) out.back().push_back(as_json(value));
  }
  return out;
}

json as_json(const PositionProducts& products) {
  json heads = json::array();
  for (const HeadProducts& one : products.heads) {
    heads.push_back({{"layer", one.layer},
                     {"head", one.head},
                     {"trained", as_json(one.trained)},
                     {"untrained", as_json(one.untrained)}});
  }
  return {{"plain", as_json(products.plain)}, {"heads", heads}};
}

PositionProducts products_from(const json& object) {
  JsonFields fields(object, "result: positions");
  const auto share = [](const json& value) { return number_from(value, "positions"); };
  PositionProducts products{.plain = share(fields.at("plain"))};
  for (const json& entry : fields.at("heads")) {
    JsonFields at(entry, "result: positions: heads");
    HeadProducts head;
    at.read("layer", head.layer);
    at.read("head", head.head);
    head.trained = share(at.at("trained"));
    head.untrained = share(at.at("untrained"));
    at.finish();
    products.heads.push_back(head);
  }
  fields.finish();
  return products;
}

json as_json(const Pictures& pictures) {
  json out = json::object();
  if (!pictures.scores.empty()) {
    out["distances"] = pictures.distances;
    out["scores"] = as_json(pictures.scores);
  }
  if (!pictures.vectors.empty()) {
    out["step"] = pictures.step;
    out["vectors"] = as_json(pictures.vectors);
    out["cosines"] = as_json(pictures.cosines);
  }
  if (!pictures.products.empty()) {
    out["product_step"] = pictures.product_step;
    out["products"] = as_json(pictures.products);
  }
  if (!pictures.attention.empty()) {
    out["cell"] = pictures.cell;
    out["attention"] = as_json(pictures.attention);
  }
  return out;
}

Pictures pictures_from(const json& object) {
  JsonFields fields(object, "result: pictures");
  Pictures pictures;
  if (object.contains("scores")) {
    fields.read("distances", pictures.distances);
    pictures.scores = rows_from(fields.at("scores"), "scores");
  }
  if (object.contains("vectors")) {
    fields.read("step", pictures.step);
    pictures.vectors = rows_from(fields.at("vectors"), "vectors");
    pictures.cosines = rows_from(fields.at("cosines"), "cosines");
  }
  if (object.contains("products")) {
    fields.read("product_step", pictures.product_step);
    pictures.products = rows_from(fields.at("products"), "products");
  }
  if (object.contains("attention")) {
    fields.read("cell", pictures.cell);
    pictures.attention = rows_from(fields.at("attention"), "attention");
  }
  fields.finish();
  return pictures;
}

json as_json(const Mean& mean) {
  if (std::isnan(mean.value)) return {};
  json out{{"mean", mean.value}};
  if (!std::isnan(mean.error)) out["standard_error"] = mean.error;
  return out;
}

// Details that a file without them leaves empty (survey_record.h).
template <class T>
void read_if_kept(const JsonFields& fields, const std::string& name, T& value) {
  if (fields.has(name)) fields.read(name, value);
}

}  // namespace

void to_json(json& out, const ArmResult& result) {
  json lengths = json::array();
  for (const AtLength& at : result.lengths) {
    lengths.push_back({{"length", at.length},
                       {"loss", as_json(at.loss)},
                       {"sliding", as_json(at.sliding)},
                       {"loss_change", as_json(at.loss_change)},
                       {"sliding_change", as_json(at.sliding_change)}});
    if (!at.sliding_blocks.empty()) lengths.back()["sliding_blocks"] = at.sliding_blocks;
  }
  json retrieval = json::array();
  for (const AtDistance& at : result.retrieval) {
    retrieval.push_back(
        {{"length", at.length}, {"distance", at.distance}, {"accuracy", as_json(at.accuracy)}});
    if (!at.right.empty()) retrieval.back()["right"] = at.right;
  }
  json attention = json::array();
  for (const AttentionAt& at : result.attention) {
    attention.push_back(
        {{"length", at.length}, {"layer", at.layer}, {"entropy", at.entropy}, {"span", at.span}});
    if (!at.at_distance.empty()) attention.back()["at_distance"] = at.at_distance;
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
  if (!result.positions.heads.empty()) out["positions"] = as_json(result.positions);
  const json pictures = as_json(result.pictures);
  if (!pictures.empty()) out["pictures"] = pictures;
}

void from_json(const json& json, ArmResult& result) {
  JsonFields fields(json, "result");
  result.arm = fields.at("arm").get<Arm>();
  read_if_kept(fields, "diverged", result.diverged);
  read_if_kept(fields, "message", result.message);
  read_if_kept(fields, "weights", result.weights);
  read_if_kept(fields, "train_seconds", result.train_seconds);
  read_if_kept(fields, "test_seconds", result.test_seconds);
  for (const nlohmann::json& entry : fields.value("lengths")) {
    JsonFields at(entry, "result: lengths");
    AtLength length;
    at.read("length", length.length);
    length.loss = mean_from(at.value("loss"));
    length.sliding = mean_from(at.at("sliding"));
    length.loss_change = mean_from(at.value("loss_change"));
    length.sliding_change = mean_from(at.at("sliding_change"));
    if (entry.contains("sliding_blocks")) at.read("sliding_blocks", length.sliding_blocks);
    at.finish();
    result.lengths.push_back(length);
  }
  read_if_kept(fields, "loss_at", result.loss_at);
  for (const nlohmann::json& entry : fields.value("attention")) {
    JsonFields at(entry, "result: attention");
    AttentionAt found;
    at.read("length", found.length);
    at.read("layer", found.layer);
    at.read("entropy", found.entropy);
    at.read("span", found.span);
    if (entry.contains("at_distance")) at.read("at_distance", found.at_distance);
    at.finish();
    result.attention.push_back(found);
  }
  for (const nlohmann::json& entry : fields.value("retrieval")) {
    JsonFields at(entry, "result: retrieval");
    AtDistance found;
    at.read("length", found.length);
    at.read("distance", found.distance);
    found.accuracy = mean_from(at.at("accuracy"));
    if (entry.contains("right")) at.read("right", found.right);
    at.finish();
    result.retrieval.push_back(found);
  }
  read_if_kept(fields, "train_loss", result.train_loss);
  read_if_kept(fields, "machine", result.machine);
  if (json.contains("positions")) result.positions = products_from(fields.at("positions"));
  if (json.contains("pictures")) result.pictures = pictures_from(fields.at("pictures"));
  fields.finish();
}

json read_json(const std::filesystem::path& path) {
  return naming_file(path,
                     [&] { return checked_json(read_file(path, kMostJsonBytes), path.string()); });
}

void write_json(const std::filesystem::path& path, const json& json) {
  write_file(path, json.dump(2) + "\n");
}

}  // namespace sextant::lab
