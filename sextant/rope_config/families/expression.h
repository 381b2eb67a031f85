// Expressions of the tables of model families: Python's syntax and values, without calls but for
// int, min, max and len. README.md beside this file has the language.
#pragma once

#include <functional>
#include <string>

#include "sextant/rope_config/families/value.h"

namespace sextant {

// The value of a name: null where there is none. One that is borrowed outlives the evaluation.
using ValueOf = std::function<Value(const std::string&)>;

// The value of an expression. Throws Error that shows the expression if it is none, or if it meets
// a value of another type than it needs: arithmetic with null, a list that is too short.
nlohmann::json evaluate(const std::string& expression, const ValueOf& value_of);

// Throws Error unless the text is an expression.
void check_expression(const std::string& expression);

// Python's truth: null, false, 0, '' and what is empty are false.
bool is_true(const nlohmann::json& value);

}  // namespace sextant
