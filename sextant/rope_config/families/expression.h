// Expressions in the tables of model families: Python's syntax and values, with int, min, max and
// len as the only calls. README.md in this folder describes the language.
#pragma once

#include <functional>
#include <string>

#include "sextant/rope_config/families/value.h"

namespace sextant {

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
