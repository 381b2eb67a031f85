// The table claims.json is compiled in, and read strictly at its first use.
#include "sextant/lab/report/claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/base/names.h"
#include "sextant/files/json_fields.h"

namespace sextant {

extern const std::string_view kClaims;

namespace lab {
namespace {

using nlohmann::json;

constexpr Names<Side, 2> kSides{{{Side::kBelow, "below"}, {Side::kAbove, "above"}}};

Measure measure_named(const std::string& wanted) {
  const auto found =
      std::ranges::find_if(measures(), [&](Measure one) { return key(one) == wanted; });
  if (found == measures().end()) fail("claims.json: measure: expected a known one, got " + wanted);
  return *found;
}

double bound_named(const json& bound) {
  if (bound.is_number()) return bound.get<double>();
  const auto& rule = bound.get_ref<const std::string&>();
  if (rule == "holds") return kHoldsBelow;
  if (rule == "breaks") return kBreaksAbove;
  if (rule == "retrieves") return kRetrievesFrom;
  if (rule == "same") return kSameLoss;
  fail(
      "claims.json: bound: expected a number, holds, breaks, retrieves or "
      "same, got " +
      rule);
}

Claim claim_of(const json& row) {
  const JsonFields fields(row, "claims.json");
  const json& arms = fields.at("arms");
  const Claim claim{
      .text = fields.string("claim"),
      .source = fields.string("source"),
      .measure = measure_named(fields.string("measure")),
      .method = arms.at(0),
      .other = arms.size() > 1 ? arms.at(1).get<std::string>() : "",
      .side = value_named(kSides, "claims.json: side", fields.string("side")),
      .bound = bound_named(fields.at("bound")),
      .question = fields.optional_string("question").value_or(""),
      .objective = objective_named(fields.optional_string("task").value_or("causal"))};
  fields.finish();
  return claim;
}

std::vector<ClaimSubject> read_subjects() {
  std::vector<ClaimSubject> subjects;
  const json table = json::parse(kClaims);
  for (const auto& [name, rows] : table.items()) {
    subjects.push_back({.name = name, .claims = {}});
    for (const json& row : rows) subjects.back().claims.push_back(claim_of(row));
  }
  return subjects;
}

}  // namespace

const char* name(Side side) { return name_in(kSides, side); }

std::span<const ClaimSubject> claim_subjects() {
  static const std::vector<ClaimSubject> kSubjects = read_subjects();
  return kSubjects;
}

}  // namespace lab
}  // namespace sextant
