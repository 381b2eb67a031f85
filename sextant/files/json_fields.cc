// A reader asks for a field by name and kind. A kind is a test and the words of its error, so each
// type and range is written once.
#include "sextant/files/json_fields.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "sextant/base/error.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"

namespace sextant {

using nlohmann::json;

struct JsonKind {
  std::string expected;  // in messages
  std::function<bool(const json&)> fits;
};

namespace {

std::string in_quotes(const json& word) {
  return word.dump(-1, ' ', true, json::error_handler_t::replace);
}

// The last key before a byte; empty if there is none.
std::string key_before(const std::string& text, size_t byte) {
  const size_t colon = text.rfind(':', byte), quote = text.rfind('"', colon);
  if (colon == std::string::npos || quote == std::string::npos || quote == 0) return "";
  const size_t open = text.rfind('"', quote - 1);
  if (open == std::string::npos) return "";
  return text.substr(open + 1, std::min<size_t>(quote - open - 1, 60));
}

template <class T>
std::string from_to(T low, T high) {
  std::ostringstream out;
  out << " from " << low << " to " << high;
  return out.str();
}

bool is_number(const json& value, double low, double high) {
  if (!value.is_number()) return false;
  const auto got = value.get<double>();
  return got >= low && got <= high;
}

bool is_integer(const json& value, int64_t low, int64_t high, bool may_be_float) {
  if (value.is_number_float()) {
    const auto got = value.get<double>();
    return may_be_float && got == std::floor(got) && got >= static_cast<double>(low) &&
           got <= static_cast<double>(high) && std::fabs(got) < 0x1p53;
  }
  if (!value.is_number_integer()) return false;
  // An unsigned integer beyond int64 would wrap.
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return false;
  const auto got = value.get<int64_t>();
  return got >= low && got <= high;
}

JsonKind integer_kind(int64_t low, int64_t high, const JsonRules& rules) {
  return {"an integer" + from_to(low, high),
          [=, floats = rules.whole_floats_are_integers](const json& value) {
            return is_integer(value, low, high, floats);
          }};
}

JsonKind integers_kind(int64_t low, int64_t high, const JsonRules& rules) {
  return {"integers" + from_to(low, high),
          [integer = integer_kind(low, high, rules)](const json& value) {
            return value.is_array() && std::ranges::all_of(value, integer.fits);
          }};
}

JsonKind number_kind(double low, double high) {
  return {"a number" + from_to(low, high),
          [=](const json& value) { return is_number(value, low, high); }};
}

JsonKind numbers_kind(double low, double high) {
  return {"numbers" + from_to(low, high), [number = number_kind(low, high)](const json& value) {
            return value.is_array() && std::ranges::all_of(value, number.fits);
          }};
}

JsonKind flag_kind() { return {"true or false", &json::is_boolean}; }
JsonKind string_kind(const JsonRules& rules) { return {rules.string, &json::is_string}; }
JsonKind object_kind() { return {"an object", &json::is_object}; }

template <class T>
std::optional<T> value_of(const json* found) {
  return found == nullptr ? std::nullopt : std::optional<T>(found->get<T>());
}

}  // namespace

json checked_json(const std::string& text, const std::string& where) {
  std::vector<std::set<std::string>> around;  // keys of enclosing objects; JSON allows repeats
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= kDeepestJson)
      fail(where + ": expected at most " + std::to_string(kDeepestJson) +
           " objects and lists within each other, but got more");
    if (event == json::parse_event_t::object_start) around.emplace_back();
    if (event == json::parse_event_t::object_end) around.pop_back();
    if (event == json::parse_event_t::key &&
        !around.back().insert(parsed.get<std::string>()).second) {
      fail(where + ": " + in_quotes(parsed) + ": expected once, but got two");
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::parse_error& error) {
    // nlohmann gives a byte; users need a key.
    const size_t byte = std::min(error.byte, text.size());
    const std::string key = key_before(text, byte);
    fail(where + ": " + (key.empty() ? "" : in_quotes(key) + ": ") +
         "expected JSON, but could not read it at byte " + std::to_string(byte));
  } catch (const json::exception& error) {  // "... number overflow parsing '1e999'"
    const std::string what = error.what(), number = what.substr(what.find('\'') + 1, 60);
    fail(where + ": expected JSON with numbers that are finite as float64, but got " +
         number.substr(0, number.find('\'')));
  }
}

json json_or_word(const std::string& word) {
  try {
    return checked_json(word, "");
  } catch (const Error&) {
    return word;
  }
}

json checked_json_object(const std::string& text, const std::string& where) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && text[start] == '{') return checked_json(text, where);
  fail(where + ": expected a JSON object, but got " + text.substr(0, 200));
}

json read_json(const std::filesystem::path& path) {
  return naming_file(path,
                     [&] { return checked_json(read_file(path, kMostJsonBytes), path.string()); });
}

void write_json(const std::filesystem::path& path, const json& content) {
  write_file(path, content.dump(2) + "\n");
}

std::string start_of(const json& value) { return in_quotes(value).substr(0, 60); }

JsonFields::JsonFields(const json& object, std::string where, JsonRules rules)
    : object_(object), where_(std::move(where)), rules_(rules) {
  if (!object.is_object()) fail(where_ + ": expected an object, but got " + object.type_name());
}

bool JsonFields::has(const std::string& name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !(rules_.null_is_absent && found->is_null());
}

void JsonFields::refuse(const std::string& name, const std::string& expected) const {
  fail(where_ + ": " + name + ": expected " + expected + ", but " +
       (has(name) ? "got " + rules_.shown(object_.at(name)) : "it is missing"));
}

const json& JsonFields::value(const std::string& name) const {
  static const json null;
  requested_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() ? null : *found;
}

const json& JsonFields::at(const std::string& name) const {
  if (!has(name)) refuse(name, "a value");
  return value(name);
}

const json* JsonFields::find(const std::string& name, const JsonKind& kind) const {
  const json& found = value(name);
  if (found.is_null()) return nullptr;
  if (!kind.fits(found)) refuse(name, kind.expected);
  return &found;
}

const json& JsonFields::require(const std::string& name, const JsonKind& kind) const {
  const json* found = find(name, kind);
  if (found == nullptr) refuse(name, kind.expected);
  return *found;
}

int64_t JsonFields::integer(const std::string& name, int64_t low, int64_t high) const {
  return require(name, integer_kind(low, high, rules_)).get<int64_t>();
}

double JsonFields::number(const std::string& name, double low, double high) const {
  return require(name, number_kind(low, high)).get<double>();
}

bool JsonFields::flag(const std::string& name) const {
  return require(name, flag_kind()).get<bool>();
}

std::string JsonFields::string(const std::string& name) const {
  return require(name, string_kind(rules_)).get<std::string>();
}

size_t JsonFields::choice(const std::string& name,
                          std::initializer_list<std::string_view> choices) const {
  const json& found = value(name);
  std::string expected;
  size_t index = 0;
  for (const std::string_view choice : choices) {
    if (found.is_string() && found.get_ref<const std::string&>() == choice) return index;
    expected += (index++ == 0 ? "one of \"" : ", \"") + std::string(choice) + "\"";
  }
  refuse(name, expected);
}

std::vector<int64_t> JsonFields::integers(const std::string& name, int64_t low,
                                          int64_t high) const {
  return require(name, integers_kind(low, high, rules_)).get<std::vector<int64_t>>();
}

const json& JsonFields::object(const std::string& name) const {
  return require(name, object_kind());
}

std::optional<int64_t> JsonFields::optional_integer(const std::string& name, int64_t low,
                                                    int64_t high) const {
  return value_of<int64_t>(find(name, integer_kind(low, high, rules_)));
}

std::optional<double> JsonFields::optional_number(const std::string& name, double low,
                                                  double high) const {
  return value_of<double>(find(name, number_kind(low, high)));
}

std::optional<bool> JsonFields::optional_flag(const std::string& name) const {
  return value_of<bool>(find(name, flag_kind()));
}

std::optional<std::string> JsonFields::optional_string(const std::string& name) const {
  return value_of<std::string>(find(name, string_kind(rules_)));
}

std::vector<int64_t> JsonFields::optional_integers(const std::string& name, int64_t low,
                                                   int64_t high) const {
  const json* found = find(name, integers_kind(low, high, rules_));
  return found == nullptr ? std::vector<int64_t>() : found->get<std::vector<int64_t>>();
}

std::vector<double> JsonFields::optional_numbers(const std::string& name, double low,
                                                 double high) const {
  const json* found = find(name, numbers_kind(low, high));
  return found == nullptr ? std::vector<double>() : found->get<std::vector<double>>();
}

const json* JsonFields::optional_object(const std::string& name) const {
  return find(name, object_kind());
}

std::vector<std::string> JsonFields::unrequested() const {
  std::vector<std::string> names;
  for (const auto& item : object_.items())
    if (!was_requested(item.key()) && has(item.key())) names.push_back(item.key());
  return names;
}

void JsonFields::finish() const {
  const std::vector<std::string> unknown = unrequested();
  if (!unknown.empty()) fail(where_ + ": " + unknown[0] + ": expected no such field, but got one");
}

}  // namespace sextant
