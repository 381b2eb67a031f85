#include "sextant/rope_config/layer_values.h"

#include <cmath>
#include <cstdint>
#include <sstream>

#include "sextant/base/error.h"
#include "sextant/position/query_scale.h"
#include "sextant/rope_config/families/expression.h"

namespace sextant {
namespace {

double part_of_law(const ModelFields& fields, const LayerValues& values,
                   const std::string& expression, double low, double high) {
  const nlohmann::json value = values.of_expression(expression);
  if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high)) {
    fields.bad(expression, "a number of the law for queries", value);
  }
  return value.get<double>();
}

}  // namespace

using nlohmann::json;

Value LayerValues::of_name(const std::string& name) const {
  if (name == "kind") return Value(facts_.kind);
  if (name == "rotates") return Value(facts_.rotates);
  if (name == "nested") return Value(parameters_.nested);
  if (name == "rope_type") return Value(facts_.object.value("rope_type", json()));
  if (name == "rotary_dim" && facts_.rotary_dim) return Value(*facts_.rotary_dim);
  if (name == "head_dim" && facts_.head_dim > 0) return Value(facts_.head_dim);
  const bool of_object = name == "rope_theta" || name == "partial_rotary_factor" ||
                         name == "truncate" || name == "factor";
  if (of_object && facts_.object.contains(name)) return Value(facts_.object[name]);
  return fields_.find_value(name, layer_);
}

json LayerValues::of_expression(const std::string& expression) const {
  try {
    return evaluate(expression, [this](const std::string& name) { return of_name(name); });
  } catch (const Error& error) {
    const Family* family = fields_.family();
    fail(fields_.where() + ": layer " + std::to_string(layer_) +
         (family == nullptr ? "" : ", by " + family->origin() + " (" + family->source + ")") +
         ": " + error.what());
  }
}

std::optional<json> LayerValues::of_family(std::string Family::*expression) const {
  const Family* family = fields_.family();
  if (family == nullptr || (family->*expression).empty()) return {};
  return of_expression(family->*expression);
}

std::optional<double> LayerValues::number_of_family(std::string Family::*expression,
                                                    const std::string& name, double low,
                                                    double high) const {
  const auto value = of_family(expression);
  if (!value || value->is_null() || *value == json(false)) return {};
  const bool good =
      value->is_number() && value->get<double>() >= low && value->get<double>() <= high;
  if (!good) {
    std::ostringstream range;
    range << "a number from " << low << " to " << high << " in layer " << layer_;
    fields_.bad(name, range.str(), *value);
  }
  return value->get<double>();
}

std::optional<int64_t> LayerValues::integer(const std::string& name, int64_t low,
                                            int64_t high) const {
  const json value = fields_.value(name, layer_);
  const json whole = fields_.value(name);
  if (value == whole) return fields_.integer(name, low, high);
  if (value.is_null()) return {};
  const double x = value.is_number() ? value.get<double>() : -1;
  if (!(x == std::floor(x) && x >= static_cast<double>(low) && x <= static_cast<double>(high))) {
    fields_.bad("per_layer_config." + std::to_string(layer_) + "." + name,
                "an integer from " + std::to_string(low) + " to " + std::to_string(high), value);
  }
  return static_cast<int64_t>(x);
}

void read_query_law(ModelFields& fields, const LayerValues& values, LayerFacts& facts) {
  const Family* family = fields.family();
  if (family != nullptr && !family->query_laws.empty()) {
    for (const FamilyQueryLaw& law : family->query_laws) {
      if (!law.when.empty() && !is_true(values.of_expression(law.when))) continue;
      if (!law.words.empty()) {
        facts.query_law = law.words;
        return;
      }
      facts.query_scale = {
          law.law == "llama4"      ? QueryLaw::kLlama4
          : law.law == "ministral" ? QueryLaw::kMinistral
                                   : QueryLaw::kLogn,
          static_cast<int64_t>(part_of_law(fields, values, law.length, 1, 0x1p40)),
          law.strength.empty() ? 0 : part_of_law(fields, values, law.strength, 0, 1e6)};
      return;
    }
    return;
  }
  if (facts.rotates || !is_true(fields.value("attn_temperature_tuning"))) return;
  facts.query_scale = {QueryLaw::kLlama4,
                       fields.integer("floor_scale", 1, kLongestSequence).value_or(8192),
                       fields.number("attn_scale", 0, 1e6).value_or(0.1)};
}

}  // namespace sextant
