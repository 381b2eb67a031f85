// The fields of each record are listed once, by fields_of(), for the writer and the reader
// (json_record.h). Records of pages lack the details of arms, so lists may be missing.
#include "sextant/lab/result/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/base/printable.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/json_record.h"
#include "sextant/files/read_file.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

using Rows = std::vector<std::vector<double>>;

// JSON has no NaN; it is written as null.
json as_json(double value) { return std::isnan(value) ? json() : json(value); }

json as_json(const Rows& rows) {
  json out = json::array();
  for (const std::vector<double>& row : rows) {
    out.push_back(json::array());
    for (const double value : row) out.back().push_back(as_json(value));
  }
  return out;
}

void read_numbers(const json& value, const std::string& where, double& number) {
  if (!value.is_number() && !value.is_null())
    fail("result: " + where + ": expected numbers, but got " + value.dump());
  number = value.is_null() ? NAN : value.get<double>();
}

void read_numbers(const json& rows, const std::string& where, Rows& result) {
  for (const json& row : rows) {
    result.emplace_back();
    for (const json& value : row) read_numbers(value, where, result.back().emplace_back());
  }
}

template <class Io>
void numbers(const Io& io, const char* name, auto& value, const std::string& where) {
  if constexpr (Io::kWrites) {
    io.at[name] = as_json(value);
  } else {
    read_numbers(io.at.at(name), where, value);
  }
}

}  // namespace

template <class Io>
void fields_of(const Io& io, RecordOf<Io, Mean>& mean) {
  io("mean", mean.value);
  if (io.kept("standard_error", !std::isnan(mean.error))) io("standard_error", mean.error);
}

// A mean, or an error, that was not kept is NaN.
template <class Io>
void mean_of(const Io& io, const char* name, RecordOf<Io, Mean>& mean) {
  const bool kept = io.kept(name, !std::isnan(mean.value));
  if constexpr (!Io::kWrites) mean = {.value = NAN, .error = NAN};
  if (kept) io.record(name, mean, "result: mean");
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, AtLength>& at) {
  io("length", at.length);
  mean_of(io, "loss", at.loss);
  mean_of(io, "sliding", at.sliding);
  mean_of(io, "loss_change", at.loss_change);
  mean_of(io, "sliding_change", at.sliding_change);
  io.unless("sliding_blocks", at.sliding_blocks, {});
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, AtDistance>& at) {
  io("length", at.length)("distance", at.distance);
  io.record("accuracy", at.accuracy, "result: mean").unless("right", at.right, {});
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, AttentionAt>& at) {
  io("length", at.length)("layer", at.layer)("entropy", at.entropy)("span", at.span);
  io.unless("at_distance", at.at_distance, {});
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, HeadProducts>& head) {
  io("layer", head.layer)("head", head.head);
  numbers(io, "trained", head.trained, "positions");
  numbers(io, "untrained", head.untrained, "positions");
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, PositionProducts>& products) {
  numbers(io, "plain", products.plain, "positions");
  io.records("heads", products.heads, "result: positions: heads");
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, Pictures>& pictures) {
  const auto rows = [&](const char* name, auto& values) {
    numbers(io, name, values, std::string("pictures: ") + name);
  };
  if (io.has("scores", pictures.scores)) {
    io("distances", pictures.distances);
    rows("scores", pictures.scores);
  }
  if (io.has("vectors", pictures.vectors)) {
    io("step", pictures.step);
    rows("vectors", pictures.vectors);
    rows("cosines", pictures.cosines);
  }
  if (io.has("products", pictures.products)) {
    io("product_step", pictures.product_step);
    rows("products", pictures.products);
  }
  if (io.has("attention", pictures.attention)) {
    io("cell", pictures.cell);
    rows("attention", pictures.attention);
  }
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, ArmResult>& result) {
  // Details are written always; a file without them (survey_record.h) leaves them empty.
  const auto detail = [&](const char* name, auto& value) {
    if (io.kept(name)) io(name, value);
  };
  const auto details = [&](const char* name, auto& list, const char* where) {
    if (io.kept(name)) io.records(name, list, where);
  };
  io.object("arm", result.arm);
  detail("diverged", result.diverged);
  detail("message", result.message);
  detail("weights", result.weights);
  detail("train_seconds", result.train_seconds);
  detail("test_seconds", result.test_seconds);
  details("lengths", result.lengths, "result: lengths");
  detail("loss_at", result.loss_at);
  details("attention", result.attention, "result: attention");
  details("retrieval", result.retrieval, "result: retrieval");
  detail("train_loss", result.train_loss);
  detail("machine", result.machine);
  if (io.has("positions", result.positions.heads))
    io.record("positions", result.positions, "result: positions");
  if (io.has("pictures", result.pictures))
    io.record("pictures", result.pictures, "result: pictures");
}

void to_json(json& out, const ArmResult& result) { write_record(out, result); }
void from_json(const json& in, ArmResult& result) { read_record(in, "result", result); }

ArmResult read_result(const std::filesystem::path& path) {
  return naming_file(path, [&] { return read_json(path).get<ArmResult>(); });
}

std::vector<Machine> machines_of(std::span<const std::string> names) {
  std::vector<Machine> machines;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    const auto known = std::ranges::find(machines, name, &Machine::name);
    if (known == machines.end()) {
      machines.push_back({.name = name, .arms = 1});
    } else {
      ++known->arms;
    }
  }
  return machines;
}

std::vector<Machine> machines_of(std::span<const ArmResult> results) {
  std::vector<std::string> names;
  for (const ArmResult& result : results) names.push_back(result.machine);
  return machines_of(names);
}

std::string unlike_machines_text(std::span<const Machine> machines) {
  if (machines.size() < 2) return "";
  std::string text =
      "The arms ran on unlike machines, where the same arm gives other digits, and seconds cannot "
      "be compared:\n";
  for (const Machine& machine : machines)
    text += fmt::format("  {:>4} {}  {}\n", machine.arms, machine.arms == 1 ? "arm " : "arms",
                        printable(machine.name));
  return text;
}

}  // namespace sextant::lab
