// The parser of JSON that comes from outside. Values deeper than kDeepestJson are refused, because
// copying, comparing and printing them would exhaust the stack.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sextant {

inline constexpr int kDeepestJson = 64;

// Throws Error that begins with `where` for text that is not JSON, with the key whose value could
// not be read; for a key that an object has twice; and for numbers beyond double.
nlohmann::json checked_json(const std::string& text, const std::string& where);

// The value of a word of a command line: JSON, or the word itself as a string.
nlohmann::json json_or_word(const std::string& word);

// Throws Error that begins with `where` if the text is not a JSON object.
nlohmann::json checked_json_object(const std::string& text, const std::string& where);

// A file of JSON. Throws Error that names the file if it is missing, malformed or too large.
nlohmann::json read_json(const std::filesystem::path& path);
void write_json(const std::filesystem::path& path, const nlohmann::json& json);

// Reads a JSON object strictly: a field that is missing, unknown, of another type or out of range
// is an Error that names the object, the field, the expectation and the value.
//
// Sextant's own files follow the default rules. rope_config/foreign_fields.h has the rules of other
// programs' configurations, torch/methods/shared/options.h those of a method's options.

// Returns the first 60 characters of the value's JSON, in ASCII because a terminal may print them.
std::string start_of(const nlohmann::json& value);

// The rules in which the uses of JsonFields differ.
struct JsonRules {
  bool null_is_absent = false;             // Otherwise a null is a value of the wrong type.
  bool whole_floats_are_integers = false;  // Some writers give integers as 8192.0.
  const char* string = "a string";         // The name of the type in messages.
  std::string (*shown)(const nlohmann::json&) = start_of;  // The value in messages.
};

struct JsonKind;  // a type with its range, known only to the implementation

// A reader is const although it records which fields were requested: the object does not change.
class JsonFields {
 public:
  // Keeps a reference to `object`, which must outlive the reader. `where` begins each message:
  // "config.json". Throws Error if `object` is not an object.
  JsonFields(const nlohmann::json& object, std::string where, JsonRules rules = {});

  // Required fields.
  int64_t integer(const std::string& name, int64_t low, int64_t high) const;
  double number(const std::string& name, double low, double high) const;
  bool flag(const std::string& name) const;
  std::string string(const std::string& name) const;
  // Returns the index of the field's value in `choices`.
  size_t choice(const std::string& name, std::initializer_list<std::string_view> choices) const;
  std::vector<int64_t> integers(const std::string& name, int64_t low, int64_t high) const;
  const nlohmann::json& object(const std::string& name) const;
  // A value of any type.
  const nlohmann::json& at(const std::string& name) const;
  // Reads a value of the type of `value`, with the range of that type.
  template <class T>
  void read(const std::string& name, T& value) const;

  // Optional fields: the result is empty, or nullptr, if the field is absent or null.
  std::optional<int64_t> optional_integer(const std::string& name, int64_t low, int64_t high) const;
  std::optional<double> optional_number(const std::string& name, double low, double high) const;
  std::optional<bool> optional_flag(const std::string& name) const;
  std::optional<std::string> optional_string(const std::string& name) const;
  std::vector<int64_t> optional_integers(const std::string& name, int64_t low, int64_t high) const;
  std::vector<double> optional_numbers(const std::string& name, double low, double high) const;
  const nlohmann::json* optional_object(const std::string& name) const;
  // A value of any type; null if the field is absent.
  const nlohmann::json& value(const std::string& name) const;

  // Returns whether the object has the field; does not mark it as requested.
  bool has(const std::string& name) const;
  // Marks a field as requested whose value does not matter.
  void skip(const std::string& name) const { requested_.insert(name); }
  bool was_requested(const std::string& name) const { return requested_.contains(name); }
  // Returns the names of the object's fields that were not requested.
  std::vector<std::string> unrequested() const;
  // Throws Error if there are such fields. Call it after the last field.
  void finish() const;

  // Throws Error, with the expectation and the field's value.
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json* find(const std::string& name, const JsonKind& kind) const;
  const nlohmann::json& require(const std::string& name, const JsonKind& kind) const;

  template <class T>
  static std::string type_name();

  const nlohmann::json& object_;
  std::string where_;
  JsonRules rules_;
  mutable std::set<std::string> requested_;
};

template <class T>
void JsonFields::read(const std::string& name, T& value) const {
  const nlohmann::json& field = at(name);
  // nlohmann::json converts 1.5 to 1 and -1 to 2^64 - 1 for integral types.
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const bool fits =
        std::is_unsigned_v<T> ? field.is_number_unsigned() : field.is_number_integer();
    if (!fits) refuse(name, type_name<T>());
  }
  try {
    value = field.get<T>();
  } catch (const std::exception&) {
    refuse(name, type_name<T>());
  }
}

template <class T>
std::string JsonFields::type_name() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_unsigned_v<T>) return "a count";
  if constexpr (std::is_integral_v<T>) return "an integer";
  if constexpr (std::is_floating_point_v<T>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "a string";
  return "another type";
}

}  // namespace sextant
