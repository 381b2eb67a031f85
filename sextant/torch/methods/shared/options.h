// Options of a method with strict checks: a value of the wrong type or out of range is an Error
// that names the method, the option, the expectation and the value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// Keeps a reference to `options`, which must outlive it. The options are complete: make_method()
// has merged the user's options over the defaults and refused options that have no default.
class Options {
 public:
  Options(std::string_view method, const nlohmann::json& options)
      : method_(method), options_(options) {}

  int64_t integer(const char* option, int64_t low, int64_t high) const;
  double number(const char* option, double low, double high) const;
  bool flag(const char* option) const;
  // Returns the index of the choice.
  size_t choice(const char* option, std::initializer_list<std::string_view> choices) const;
  std::string text(const char* option) const;
  std::vector<int64_t> integers(const char* option, int64_t low, int64_t high) const;
  const nlohmann::json& object(const char* option) const;
  // The value, of any type.
  const nlohmann::json& value(const char* option) const { return at(option); }

  // The same functions for options that may be null; null stands for `otherwise`, a value that only
  // the model knows.
  int64_t integer_or(const char* option, int64_t otherwise, int64_t low, int64_t high) const;
  double number_or(const char* option, double otherwise, double low, double high) const;
  std::optional<bool> flag_or_null(const char* option) const;

  // Throws Error, saying what was expected of the option.
  [[noreturn]] void refuse(const char* option, const std::string& expected) const;

 private:
  const nlohmann::json& at(const char* option) const;

  std::string method_;
  const nlohmann::json& options_;
};

}  // namespace sextant
