#include "sextant/torch/methods/shared/options.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sextant/base/error.h"

namespace sextant {
namespace {

template <class T>
std::string between(T low, T high) {
  std::ostringstream out;
  out << low << " to " << high;
  return out.str();
}

}  // namespace

const nlohmann::json& Options::at(const char* option) const {
  static const nlohmann::json nothing;
  const auto found = options_.find(option);
  return found == options_.end() ? nothing : *found;
}

void Options::refuse(const char* option, const std::string& expected) const {
  fail(method_ + ": " + option + ": expected " + expected + ", but got " + at(option).dump());
}

int64_t Options::integer(const char* option, int64_t low, int64_t high) const {
  const nlohmann::json& value = at(option);
  const std::string expected = "an integer from " + between(low, high);
  if (!value.is_number_integer()) refuse(option, expected);
  // An unsigned integer beyond int64 would wrap.
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    refuse(option, expected);
  const auto got = value.get<int64_t>();
  if (got < low || got > high) refuse(option, expected);
  return got;
}

int64_t Options::integer_or(const char* option, int64_t otherwise, int64_t low,
                            int64_t high) const {
  if (!at(option).is_null()) return integer(option, low, high);
  if (otherwise < low || otherwise > high)
    fail(method_ + ": " + option + ": expected an integer from " + between(low, high) +
         ", but the model's own size is " + std::to_string(otherwise));
  return otherwise;
}

std::vector<int64_t> Options::integers(const char* option, int64_t low, int64_t high) const {
  const nlohmann::json& value = at(option);
  const std::string expected = "integers from " + between(low, high);
  if (!value.is_array()) refuse(option, expected);
  std::vector<int64_t> result;
  for (const nlohmann::json& element : value) {
    if (!element.is_number_integer()) refuse(option, expected);
    result.push_back(element.get<int64_t>());
    if (result.back() < low || result.back() > high) refuse(option, expected);
  }
  return result;
}

double Options::number(const char* option, double low, double high) const {
  const nlohmann::json& value = at(option);
  const std::string expected = "a number from " + between(low, high);
  if (!value.is_number()) refuse(option, expected);
  const auto got = value.get<double>();
  if (!(got >= low && got <= high)) refuse(option, expected);
  return got;
}

double Options::number_or(const char* option, double otherwise, double low, double high) const {
  return at(option).is_null() ? otherwise : number(option, low, high);
}

std::optional<bool> Options::flag_or_null(const char* option) const {
  if (at(option).is_null()) return std::nullopt;
  return flag(option);
}

bool Options::flag(const char* option) const {
  const nlohmann::json& value = at(option);
  if (!value.is_boolean()) refuse(option, "true or false");
  return value.get<bool>();
}

size_t Options::choice(const char* option, std::initializer_list<std::string_view> choices) const {
  const nlohmann::json& value = at(option);
  std::string expected;
  size_t index = 0;
  for (const std::string_view choice : choices) {
    if (value.is_string() && value.get_ref<const std::string&>() == choice) return index;
    expected += (index++ == 0 ? "one of \"" : ", \"") + std::string(choice) + "\"";
  }
  refuse(option, expected);
}

std::string Options::text(const char* option) const {
  const nlohmann::json& value = at(option);
  if (!value.is_string()) refuse(option, "a string");
  return value.get<std::string>();
}

const nlohmann::json& Options::object(const char* option) const {
  const nlohmann::json& value = at(option);
  if (!value.is_object()) refuse(option, "an object");
  return value;
}

}  // namespace sextant
