#include "sextant/rope_config/layer_query_law.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

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
