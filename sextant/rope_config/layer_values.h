// The values of names and expressions for one layer.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sextant/rope_config/layer_facts.h"

namespace sextant {

class LayerValues {
 public:
  // Keeps references to all arguments, which must outlive it; `facts` are those known so far.
  LayerValues(ModelFields& fields, const RopeParameters& parameters, int64_t layer,
              const LayerFacts& facts)
      : fields_(fields), parameters_(parameters), layer_(layer), facts_(facts) {}

  // The value of an expression. Throws an Error that names the layer and the expression.
  nlohmann::json of_expression(const std::string& expression) const;

  // The value of the family's expression; none if the family has no such expression.
  std::optional<nlohmann::json> of_family(std::string Family::*expression) const;
  // The same as a number in range; none for null and false. `name` appears in errors.
  std::optional<double> number_of_family(std::string Family::*expression, const std::string& name,
                                         double low, double high) const;

  // A field's value for this layer.
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high) const;

 private:
  Value of_name(const std::string& name) const;

  ModelFields& fields_;
  const RopeParameters& parameters_;
  int64_t layer_;
  const LayerFacts& facts_;
};

// The law by which a layer scales its queries, from its family's code or the file's fields.

// Sets facts.query_scale or facts.query_law if the layer has a law; facts.rotates is already set.
void read_query_law(ModelFields& fields, const LayerValues& values, LayerFacts& facts);

}  // namespace sextant
