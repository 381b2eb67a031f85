// The value of a name or an expression: either owned, or borrowed without a copy from a file that
// outlives it. Copies would be costly since lists by layer are evaluated for each layer.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

namespace sextant {

class Value {
 public:
  Value(nlohmann::json own) : own_(std::move(own)) {}  // NOLINT: implicit, as json's are
  static Value borrowed(const nlohmann::json& other) {
    Value value{nlohmann::json()};
    value.other_ = &other;
    return value;
  }

  const nlohmann::json& get() const { return other_ != nullptr ? *other_ : own_; }
  // A value within this one.
  Value part(const nlohmann::json& within) const {
    return other_ != nullptr ? borrowed(within) : Value(within);
  }

 private:
  nlohmann::json own_;
  const nlohmann::json* other_ = nullptr;
};

}  // namespace sextant
