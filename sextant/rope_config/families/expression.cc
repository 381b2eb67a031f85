#include "sextant/rope_config/families/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "sextant/error.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr int kDeepest = 100;  // parentheses within parentheses

std::optional<double> as_number(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_number()) return value.get<double>();
  return {};
}

bool equal(const json& a, const json& b) {
  const auto x = as_number(a), y = as_number(b);
  return x && y ? *x == *y : a == b;
}

// The key of an object whose number a layer is: "5" and "05" are of layer 5.
const json* at_layer(const json& object, double layer) {
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

// Parses and evaluates in one pass. Operands that an `or`, an `and` or an `if` leaves out are
// parsed with `live_` off: their values are null, and nothing of them can fail but their syntax.
class Evaluator {
 public:
  Evaluator(std::string_view text, const ValueOf* value_of)
      : text_(text), value_of_(value_of), live_(value_of != nullptr) {
    next();
  }

  json whole() {
    json value = conditional();
    if (!token_.empty()) bad("an operator or the end");
    return value;
  }

 private:
  [[noreturn]] void bad(const std::string& expected) const {
    fail("expression: " + std::string(text_) + ": expected " + expected +
         (token_.empty() ? ", but it ends" : ", but got \"" + std::string(token_) + "\""));
  }
  [[noreturn]] void bad_value(const std::string& expected, const json& value) const {
    fail("expression: " + std::string(text_) + ": expected " + expected + ", but got " +
         value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60));
  }

  static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  void next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const size_t start = at_;
    const auto is_digit = [&](size_t k) {
      return k < text_.size() && text_[k] >= '0' && text_[k] <= '9';
    };
    if (at_ == text_.size()) {
      token_ = {};
      return;
    }
    const char c = text_[at_];
    if (is_digit(at_)) {
      while (at_ < text_.size() &&
             (in_name(text_[at_]) || text_[at_] == '.' ||
              ((text_[at_] == '-' || text_[at_] == '+') && text_[at_ - 1] == 'e'))) {
        ++at_;
      }
    } else if (in_name(c)) {
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    } else if (c == '\'') {
      at_ = text_.find('\'', at_ + 1);
      if (at_ == std::string_view::npos) {
        at_ = text_.size();
        token_ = {};
        bad("a closing '");
      }
      ++at_;
    } else {
      const std::string_view two = text_.substr(at_, 2);
      const bool pair =
          two == "**" || two == "//" || two == "==" || two == "!=" || two == "<=" || two == ">=";
      at_ += pair ? 2 : 1;
    }
    token_ = text_.substr(start, at_ - start);
  }

  bool take(std::string_view token) {
    if (token_ != token) return false;
    next();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) bad("\"" + std::string(token) + "\"");
  }

  double number(const json& value) const {
    if (!live_) return 1;
    const auto x = as_number(value);
    if (!x) bad_value("a number", value);
    return *x;
  }
  json finite(double x) const {
    if (!std::isfinite(x)) bad_value("a finite number", x);
    return x;
  }

  // Parses with `f`, and evaluates only if `live`.
  template <class F>
  json only_if(bool live, F f) {
    const bool before = live_;
    live_ = live_ && live;
    json value = f();
    live_ = before;
    return value;
  }

  json conditional() {
    if (++depth_ > kDeepest) bad("fewer parentheses");
    // "a if b else c": b decides and stands behind a, so a is parsed once more if it is chosen.
    const size_t start = at_ - token_.size();
    json value = only_if(false, [&] { return either(); });
    if (!take("if")) {
      if (live_) {
        back_to(start);
        value = either();
      }
    } else {
      const bool condition = is_true(either());
      need("else");
      json other = only_if(!condition, [&] { return conditional(); });
      if (condition && live_) {
        const size_t end = at_ - token_.size();
        back_to(start);
        other = either();
        back_to(end);
      }
      value = std::move(other);
    }
    --depth_;
    return value;
  }

  void back_to(size_t position) {
    at_ = position;
    next();
  }

  json either() {
    json value = both();
    while (take("or")) {
      const bool decided = is_true(value);
      json other = only_if(!decided, [&] { return both(); });
      if (!decided) value = std::move(other);
    }
    return value;
  }
  json both() {
    json value = negation();
    while (take("and")) {
      const bool decided = !is_true(value);
      json other = only_if(!decided, [&] { return negation(); });
      if (!decided) value = std::move(other);
    }
    return value;
  }
  json negation() {
    if (take("not")) {
      if (++depth_ > kDeepest) bad("fewer negations");
      const bool value = is_true(negation());
      --depth_;
      return !value;
    }
    return comparison();
  }

  json comparison() {
    json value = sum();
    while (true) {
      const std::string op(token_);
      if (op == "==" || op == "!=") {
        next();
        value = equal(value, sum()) == (op == "==");
      } else if (op == "<" || op == "<=" || op == ">" || op == ">=") {
        next();
        const double a = number(value), b = number(sum());
        value = op == "<" ? a < b : op == "<=" ? a <= b : op == ">" ? a > b : a >= b;
      } else if (op == "in" || op == "not") {
        next();
        if (op == "not") need("in");
        value = is_in(value, sum()) == (op == "in");
      } else {
        return value;
      }
    }
  }

  bool is_in(const json& value, const json& many) const {
    if (many.is_array()) {
      return std::any_of(many.begin(), many.end(), [&](const json& x) { return equal(x, value); });
    }
    if (many.is_object()) return value.is_string() && many.contains(value.get<std::string>());
    if (live_ && !many.is_null()) bad_value("a list", many);
    return false;
  }

  json sum() {
    json value = product();
    while (token_ == "+" || token_ == "-") {
      const bool plus = token_ == "+";
      next();
      const double a = number(value), b = number(product());
      value = finite(plus ? a + b : a - b);
    }
    return value;
  }

  json product() {
    json value = sign();
    while (token_ == "*" || token_ == "/" || token_ == "//" || token_ == "%") {
      const std::string op(token_);
      next();
      const json right = sign();
      const double a = number(value), b = number(right);
      if (op != "*" && b == 0) bad_value("a divisor that is not 0", right);
      value = finite(op == "*"    ? a * b
                     : op == "/"  ? a / b
                     : op == "//" ? std::floor(a / b)
                                  : a - b * std::floor(a / b));
    }
    return value;
  }

  json sign() {
    if (take("-")) {
      if (++depth_ > kDeepest) bad("fewer signs");
      const double x = -number(sign());
      --depth_;
      return x;
    }
    return power();
  }

  json power() {
    json value = member();
    if (take("**")) {
      const double base = number(value), exponent = number(sign());
      value = finite(std::pow(base, exponent));
    }
    return value;
  }

  json member() {
    json value = atom();
    while (true) {
      if (take(".")) {
        const std::string name(token_);
        if (name.empty() || !in_name(name[0])) bad("a name");
        next();
        value = field(value, name);
      } else if (take("[")) {
        const json index = conditional();
        need("]");
        value = element(value, index);
      } else {
        return value;
      }
    }
  }

  json field(const json& value, const std::string& name) const {
    if (value.is_null()) return nullptr;
    if (!value.is_object()) bad_value("an object with " + name, value);
    return value.value(name, json());
  }

  json element(const json& value, const json& index) const {
    if (value.is_null() || !live_) return nullptr;
    if (value.is_object()) {
      if (index.is_string()) return value.value(index.get<std::string>(), json());
      const json* found = at_layer(value, number(index));
      return found ? *found : json();
    }
    if (!value.is_array()) bad_value("a list", value);
    const auto size = static_cast<double>(value.size());
    double k = number(index);
    if (k < 0) k += size;
    if (!(k >= 0 && k < size) || k != std::floor(k)) {
      bad_value("a list of at least " + std::to_string(static_cast<int64_t>(k) + 1) + " elements",
                value);
    }
    return value.at(static_cast<size_t>(k));
  }

  json atom() {
    if (token_.empty()) bad("a value");
    if (take("(")) {
      json value = conditional();
      need(")");
      return value;
    }
    if (take("[")) {
      json list = json::array();
      while (!take("]")) {
        list.push_back(conditional());
        if (token_ != "]") need(",");
      }
      return list;
    }
    const std::string token(token_);
    if (token[0] == '\'') {
      next();
      return token.substr(1, token.size() - 2);
    }
    if (token[0] >= '0' && token[0] <= '9') {
      double x = 0;
      const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), x);
      if (error != std::errc() || end != token.data() + token.size()) bad("a number");
      next();
      return x;
    }
    if (!in_name(token[0])) bad("a value");
    next();
    if (token == "true") return true;
    if (token == "false") return false;
    if (token == "null") return nullptr;
    if (take("(")) return call(token);
    return live_ ? (*value_of_)(token) : json();
  }

  json call(const std::string& name) {
    std::vector<json> given;
    while (!take(")")) {
      given.push_back(conditional());
      if (token_ != ")") need(",");
    }
    if (name == "len" && given.size() == 1) {
      if (live_ && !given[0].is_array()) bad_value("a list", given[0]);
      return static_cast<double>(given[0].size());
    }
    if (name == "int" && given.size() == 1) return std::trunc(number(given[0]));
    if ((name == "min" || name == "max") && given.size() == 2) {
      const double a = number(given[0]), b = number(given[1]);
      return name == "min" ? std::min(a, b) : std::max(a, b);
    }
    fail("expression: " + std::string(text_) + ": expected int, min, max or len, but got " + name);
  }

  std::string_view text_, token_;
  const ValueOf* value_of_;
  bool live_;
  size_t at_ = 0;
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
