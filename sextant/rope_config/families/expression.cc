#include "sextant/rope_config/families/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/tokens.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr int kDeepest = 100;  // nesting depth of parentheses, signs and powers

std::optional<double> as_number(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_number()) return value.get<double>();
  return {};
}

bool equal(const json& a, const json& b) {
  const auto x = as_number(a), y = as_number(b);
  return x && y ? *x == *y : a == b;
}

// The value at the key that is the layer's index: "5" and "05" are layer 5.
const json* at_layer(const json& object, double layer) {
  if (std::fabs(layer) < 0x1p53) {
    const auto plain = object.find(std::to_string(static_cast<int64_t>(layer)));
    if (plain != object.end() && layer == std::floor(layer)) return &*plain;
  }
  for (const auto& item : object.items()) {
    const std::string& key = item.key();
    int64_t number = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (error == std::errc() && end == key.data() + key.size() &&
        static_cast<double>(number) == layer) {
      return &item.value();
    }
  }
  return nullptr;
}

// Whether a word is reserved and hence no name; Python's True, False and None are not used in the
// tables.
bool is_reserved(const std::string& name) {
  constexpr std::array kWords = {"and", "or", "not", "if", "else", "in", "True", "False", "None"};
  return std::ranges::find(kWords, name) != kWords.end();
}

bool compares(std::string_view token) {
  constexpr std::array kOperators = {"==", "!=", "<", "<=", ">", ">=", "in", "not"};
  return std::ranges::find(kOperators, token) != kOperators.end();
}

// Python's modulo: the remainder has the divisor's sign.
double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floored(double a, double b) {
  const double exact = (a - modulo(a, b)) / b, whole = std::floor(exact);
  return exact - whole > 0.5 ? whole + 1 : whole;
}

// Parses and evaluates in one pass. Operands that `or`, `and` or `if` skips are parsed with `live_`
// off: their values are null, and only their syntax can fail.
class Evaluator {
 public:
  Evaluator(std::string_view text, const ValueOf* value_of)
      : tokens_(text), value_of_(value_of), live_(value_of != nullptr) {}

  json whole() {
    const Value value = conditional();
    if (!tokens_.now().empty()) tokens_.bad("an operator or the end");
    return value.get();
  }

 private:
  [[noreturn]] void bad_value(const std::string& expected, const json& value) const {
    fail("expression: " + tokens_.text() + ": expected " + expected + ", but got " +
         value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60));
  }

  bool take(std::string_view token) { return tokens_.take(token); }

  double number(const Value& value) const {
    if (!live_) return 1;
    const auto x = as_number(value.get());
    if (!x) bad_value("a number", value.get());
    return finite(*x);
  }
  double finite(double x) const {
    if (std::isfinite(x)) return x;
    bad_value("a finite number", std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
  }

  // Parses with `f`, and evaluates only if `live`.
  template <class F>
  Value only_if(bool live, F f) {
    const bool before = live_;
    live_ = live_ && live;
    Value value = f();
    live_ = before;
    return value;
  }

  // Parses a recursive part of the grammar, with a limit on the depth.
  template <class F>
  Value within(F f) {
    if (++depth_ > kDeepest) tokens_.bad("fewer parentheses, signs and powers within each other");
    Value value = f();
    --depth_;
    return value;
  }

  Value conditional() {
    return within([&] { return chosen(); });
  }
  Value chosen() {
    // In "a if b else c", b decides and comes after a, so a is parsed again if it is chosen.
    const size_t start = tokens_.place();
    Value value = only_if(false, [&] { return either(); });
    if (!take("if")) {
      if (!live_) return value;
      tokens_.back_to(start);
      return either();
    }
    const bool condition = is_true(either().get());
    tokens_.need("else");
    Value other = only_if(!condition, [&] { return conditional(); });
    if (!condition || !live_) return other;
    const size_t end = tokens_.place();
    tokens_.back_to(start);
    other = either();
    tokens_.back_to(end);
    return other;
  }

  Value either() {
    Value value = both();
    while (take("or")) {
      const bool decided = is_true(value.get());
      Value other = only_if(!decided, [&] { return both(); });
      if (!decided) value = std::move(other);
    }
    return value;
  }
  Value both() {
    Value value = negation();
    while (take("and")) {
      const bool decided = !is_true(value.get());
      Value other = only_if(!decided, [&] { return negation(); });
      if (!decided) value = std::move(other);
    }
    return value;
  }
  Value negation() {
    if (!take("not")) return comparison();
    return Value(!is_true(within([&] { return negation(); }).get()));
  }

  // A single comparison: Python's "a < b < c" is refused, since its meaning is easily mistaken.
  Value comparison() {
    Value value = sum();
    const std::string op(tokens_.now());
    if (!compares(op)) return value;
    tokens_.next();
    if (op == "not") tokens_.need("in");
    const Value right = sum();
    if (compares(tokens_.now())) tokens_.bad("\"and\" between two comparisons");
    if (op == "==" || op == "!=") return Value(equal(value.get(), right.get()) == (op == "=="));
    if (op == "in" || op == "not") return Value(is_in(value.get(), right.get()) == (op == "in"));
    const double a = number(value), b = number(right);
    return Value(op == "<" ? a < b : op == "<=" ? a <= b : op == ">" ? a > b : a >= b);
  }

  bool is_in(const json& value, const json& many) const {
    if (many.is_array()) {
      return std::any_of(many.begin(), many.end(), [&](const json& x) { return equal(x, value); });
    }
    if (many.is_object()) return value.is_string() && many.contains(value.get<std::string>());
    if (live_ && !many.is_null()) bad_value("a list", many);
    return false;
  }

  Value sum() {
    Value value = product();
    while (tokens_.now() == "+" || tokens_.now() == "-") {
      const bool plus = tokens_.now() == "+";
      tokens_.next();
      const double a = number(value), b = number(product());
      value = Value(finite(plus ? a + b : a - b));
    }
    return value;
  }

  Value product() {
    Value value = sign();
    while (true) {
      const std::string op(tokens_.now());
      if (op != "*" && op != "/" && op != "//" && op != "%") return value;
      tokens_.next();
      const Value right = sign();
      const double a = number(value), b = number(right);
      if (op != "*" && b == 0) bad_value("a divisor that is not 0", right.get());
      value = Value(finite(op == "*"    ? a * b
                           : op == "/"  ? a / b
                           : op == "//" ? floored(a, b)
                                        : modulo(a, b)));
    }
  }

  Value sign() {
    if (!take("-")) return power();
    return Value(-number(within([&] { return sign(); })));
  }

  Value power() {
    Value value = member();
    if (!take("**")) return value;
    const double base = number(value), exponent = number(within([&] { return sign(); }));
    return Value(finite(std::pow(base, exponent)));
  }

  Value member() {
    Value value = atom();
    while (true) {
      if (take(".")) {
        const std::string name(tokens_.now());
        if (!tokens_.is_name()) tokens_.bad("a name");
        tokens_.next();
        value = field(value, name);
      } else if (take("[")) {
        const Value index = conditional();
        tokens_.need("]");
        value = element(value, index);
      } else {
        return value;
      }
    }
  }

  Value field(const Value& value, const std::string& name) const {
    const json& object = value.get();
    if (object.is_null() || !live_) return Value(nullptr);
    if (!object.is_object()) bad_value("an object with " + name, object);
    const auto found = object.find(name);
    return found == object.end() ? Value(nullptr) : value.part(*found);
  }

  Value element(const Value& value, const Value& index) const {
    const json& many = value.get();
    if (many.is_null() || !live_) return Value(nullptr);
    if (many.is_object()) {
      if (index.get().is_string()) return field(value, index.get().get<std::string>());
      const json* found = at_layer(many, number(index));
      return found ? value.part(*found) : Value(nullptr);
    }
    if (!many.is_array()) bad_value("a list", many);
    const auto size = static_cast<double>(many.size());
    const double asked = number(index), k = asked < 0 ? asked + size : asked;
    if (asked != std::floor(asked)) bad_value("a whole number as an index", index.get());
    if (!(k >= 0 && k < size)) {
      std::ostringstream least;
      least << std::setprecision(17) << (asked < 0 ? -asked : asked + 1);
      bad_value("a list of at least " + least.str() + " elements", many);
    }
    return value.part(many.at(static_cast<size_t>(k)));
  }

  // Parses expressions with commas between them, up to `end`.
  json list(std::string_view end) {
    json all = json::array();
    while (!take(end)) {
      all.push_back(conditional().get());
      if (tokens_.now() != end) tokens_.need(",");
    }
    return all;
  }

  Value atom() {
    if (tokens_.now().empty()) tokens_.bad("a value");
    if (take("(")) {
      Value value = conditional();
      tokens_.need(")");
      return value;
    }
    if (take("[")) return Value(list("]"));
    const std::string token(tokens_.now());
    if (token[0] == '\'') {
      tokens_.next();
      return Value(token.substr(1, token.size() - 2));
    }
    if (tokens_.is_number()) return Value(literal(token));
    if (!tokens_.is_name() || is_reserved(token)) tokens_.bad("a value");
    tokens_.next();
    if (token == "true") return Value(true);
    if (token == "false") return Value(false);
    if (token == "null") return Value(nullptr);
    if (take("(")) return Value(call(token, list(")")));
    return live_ ? (*value_of_)(token) : Value(nullptr);
  }

  double literal(const std::string& token) {
    double x = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), x);
    if (error != std::errc() || end != token.data() + token.size()) tokens_.bad("a number");
    tokens_.next();
    return x;
  }

  double call(const std::string& name, const json& given) const {
    const auto number_at = [&](size_t k) { return number(Value(given[k])); };
    if (name == "len" && given.size() == 1) {
      if (live_ && !given[0].is_array()) bad_value("a list", given[0]);
      return static_cast<double>(given[0].size());
    }
    if (name == "int" && given.size() == 1) return std::trunc(number_at(0));
    if (name == "at" && given.size() == 2) {
      return number(given[0].is_array() ? element(Value(given[0]), Value(given[1]))
                                        : Value(given[0]));
    }
    if ((name == "min" || name == "max") && given.size() == 2) {
      const double a = number_at(0), b = number_at(1);
      return name == "min" ? std::min(a, b) : std::max(a, b);
    }
    fail("expression: " + tokens_.text() + ": expected int, min, max, len or at, but got " + name);
  }

  Tokens tokens_;
  const ValueOf* value_of_;
  bool live_;
  int depth_ = 0;
};

}  // namespace

bool is_true(const json& value) {
  if (const auto x = as_number(value)) return *x != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

json evaluate(const std::string& expression, const ValueOf& value_of) {
  return Evaluator(expression, &value_of).whole();
}

void check_expression(const std::string& expression) { Evaluator(expression, nullptr).whole(); }

}  // namespace sextant
