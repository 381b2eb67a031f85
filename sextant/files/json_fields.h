// Reads a JSON object into a struct, strictly: an unknown, missing or ill-typed field is an Error
// that names it. For configurations and results that Sextant wrote or a person edited.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sextant/base/error.h"

namespace sextant {

class JsonFields {
 public:
  // `what` begins each message: "config.json".
  JsonFields(const nlohmann::json& object, std::string what)
      : object_(object), what_(std::move(what)) {
    if (!object.is_object()) fail(what_ + ": expected an object, but got " + object.type_name());
  }

  const nlohmann::json& at(const std::string& name) {
    seen_.insert(name);
    const auto found = object_.find(name);
    if (found == object_.end()) fail(what_ + ": " + name + ": expected a value, but it is missing");
    return *found;
  }

  template <class T>
  void read(const std::string& name, T& value) {
    const nlohmann::json& field = at(name);
    try {
      // nlohmann::json converts 1.5 to 1 and -1 to 2^64 - 1 for integral types.
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const bool fits =
            std::is_unsigned_v<T> ? field.is_number_unsigned() : field.is_number_integer();
        if (!fits) throw std::invalid_argument(field.type_name());
      }
      value = field.get<T>();
    } catch (const std::exception&) {
      fail(what_ + ": " + name + ": expected " + kind<T>() + ", but got " +
           field.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 60));
    }
  }

  // Call this after the last field: it throws Error for fields that were not read.
  void finish() const {
    for (const auto& item : object_.items()) {
      if (!seen_.contains(item.key())) {
        fail(what_ + ": " + item.key() + ": expected no such field, but got one");
      }
    }
  }

 private:
  template <class T>
  static std::string kind() {
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_unsigned_v<T>) return "a count";
    if constexpr (std::is_integral_v<T>) return "an integer";
    if constexpr (std::is_floating_point_v<T>) return "a number";
    if constexpr (std::is_same_v<T, std::string>) return "a string";
    return "another type";
  }

  const nlohmann::json& object_;
  std::string what_;
  std::set<std::string> seen_;
};

}  // namespace sextant
