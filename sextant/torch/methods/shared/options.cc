#include "sextant/torch/methods/shared/options.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"

namespace sextant {

Options::Options(std::string_view method, const nlohmann::json& options)
    : JsonFields(options, std::string(method),
                 {.shown = [](const nlohmann::json& value) { return value.dump(); }}) {}

int64_t Options::integer_or(const std::string& option, int64_t otherwise, int64_t low,
                            int64_t high) const {
  if (const auto given = optional_integer(option, low, high)) return *given;
  if (otherwise < low || otherwise > high) {
    fail(where() + ": " + option + ": expected an integer from " + std::to_string(low) + " to " +
         std::to_string(high) + ", but the model's own size is " + std::to_string(otherwise));
  }
  return otherwise;
}

}  // namespace sextant
