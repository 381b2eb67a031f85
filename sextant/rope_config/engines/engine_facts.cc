#include "sextant/rope_config/engines/engine_facts.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"

namespace sextant {

extern const std::string_view kEngineFacts;

std::string engine_fact(std::string_view id) {
  static const nlohmann::json table = nlohmann::json::parse(kEngineFacts);
  for (const nlohmann::json& fact : table.at("facts")) {
    if (fact.at("id").get<std::string>() != id) continue;
    const auto of = [&](const char* name) { return fact.at(name).get<std::string>(); };
    return of("key") + ": " + of("engine") + " " + of("does") + " (" + of("versions") + ")";
  }
  fail("engines.json: id: expected a fact, but got none of the id " + std::string(id));
}

}  // namespace sextant
