#include "sextant/rope_config/fields.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sextant/base/error.h"
#include "sextant/rope_config/shown.h"

namespace sextant {
namespace {

using nlohmann::json;

template <class T>
std::string between(T low, T high) {
  std::ostringstream out;
  out << low << " to " << high;
  return out.str();
}

bool is_within(const json& value, double low, double high) {
  if (!value.is_number()) return false;
  const auto got = value.get<double>();
  return got >= low && got <= high;
}

bool is_within(const json& value, int64_t low, int64_t high) {
  // Some writers give integers as 8192.0.
  if (value.is_number_float()) {
    const auto got = value.get<double>();
    return got == std::floor(got) && got >= static_cast<double>(low) &&
           got <= static_cast<double>(high) && std::fabs(got) < 0x1p53;
  }
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return false;
  }
  const auto got = value.get<int64_t>();
  return got >= low && got <= high;
}

}  // namespace

Fields::Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) fail(where_ + ": expected an object, but got " + shown(object));
}

const json* Fields::find(const std::string& name) {
  seen_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::has(const std::string& name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

json Fields::value(const std::string& name) const { return has(name) ? object_.at(name) : json(); }

void Fields::bad(const std::string& name, const std::string& expected) const {
  const auto found = object_.find(name);
  const bool there = found != object_.end() && !found->is_null();
  fail(where_ + ": " + name + ": expected " + expected + ", but " +
       (there ? "got " + shown(*found) : "it is missing"));
}

std::optional<double> Fields::number(const std::string& name, double low, double high) {
  const json* value = find(name);
  if (!value) return {};
  if (!is_within(*value, low, high)) bad(name, "a number from " + between(low, high));
  return value->get<double>();
}

std::optional<int64_t> Fields::integer(const std::string& name, int64_t low, int64_t high) {
  const json* value = find(name);
  if (!value) return {};
  if (!is_within(*value, low, high)) bad(name, "an integer from " + between(low, high));
  return value->get<int64_t>();
}

std::optional<bool> Fields::flag(const std::string& name) {
  const json* value = find(name);
  if (!value) return {};
  if (!value->is_boolean()) bad(name, "true or false");
  return value->get<bool>();
}

std::optional<std::string> Fields::text(const std::string& name) {
  const json* value = find(name);
  if (!value) return {};
  if (!value->is_string()) bad(name, "a text");
  return value->get<std::string>();
}

std::vector<double> Fields::numbers(const std::string& name, double low, double high) {
  const json* value = find(name);
  std::vector<double> result;
  if (!value) return result;
  if (!value->is_array()) bad(name, "numbers from " + between(low, high));
  for (const json& element : *value) {
    if (!is_within(element, low, high)) bad(name, "numbers from " + between(low, high));
    result.push_back(element.get<double>());
  }
  return result;
}

std::vector<int64_t> Fields::integers(const std::string& name, int64_t low, int64_t high) {
  const json* value = find(name);
  std::vector<int64_t> result;
  if (!value) return result;
  if (!value->is_array()) bad(name, "integers from " + between(low, high));
  for (const json& element : *value) {
    if (!is_within(element, low, high)) bad(name, "integers from " + between(low, high));
    result.push_back(element.get<int64_t>());
  }
  return result;
}

const json* Fields::object(const std::string& name) {
  const json* value = find(name);
  if (value && !value->is_object()) bad(name, "an object");
  return value;
}

double Fields::needed_number(const std::string& name, double low, double high) {
  const std::optional<double> value = number(name, low, high);
  if (!value) bad(name, "a number from " + between(low, high));
  return *value;
}

int64_t Fields::needed_integer(const std::string& name, int64_t low, int64_t high) {
  const std::optional<int64_t> value = integer(name, low, high);
  if (!value) bad(name, "an integer from " + between(low, high));
  return *value;
}

void Fields::finish() const {
  std::string unknown;
  const json* first = nullptr;
  std::string key;
  for (const auto& item : object_.items()) {
    if (seen_.contains(item.key()) || item.value().is_null()) continue;
    if (first == nullptr) {
      first = &item.value();
      key = item.key();
    } else {
      unknown += (unknown.empty() ? "; nor has it " : ", ") + shown(item.key()) + ": " +
                 shown(item.value());
    }
  }
  if (first == nullptr) return;
  fail(where_ + ": " + shown(key) + ": expected a field that its rope_type has, but got " +
       shown(*first) + unknown);
}

}  // namespace sextant
