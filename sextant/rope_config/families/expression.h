// Expressions in the tables of model families: Python's syntax and values, with int, min, max and
// len as the only calls. README.md in this folder describes the language.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace sextant {

// The value of a name or an expression: either owned, or borrowed without a copy from a file that
// outlives it. Copies would be costly since lists by layer are evaluated for each layer.
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

// Returns the value of a name, null if there is none. A borrowed value must outlive the evaluation.
using ValueOf = std::function<Value(const std::string&)>;

// The value of an expression. Throws an Error that shows the expression if it is malformed, or if a
// value has the wrong type: arithmetic with null, a list that is too short.
nlohmann::json evaluate(const std::string& expression, const ValueOf& value_of);

// Throws Error unless the text is an expression.
void check_expression(const std::string& expression);

// Python's truth value: null, false, 0, '' and empty lists and objects are false.
bool is_true(const nlohmann::json& value);

}  // namespace sextant
