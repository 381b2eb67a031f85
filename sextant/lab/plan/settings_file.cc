#include "sextant/lab/plan/settings_file.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <toml.hpp>

#include "sextant/base/error.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/report/result.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

// toml11 3 (Debian 12) and 4 (Debian 13) differ in a few names.
std::string place(const std::filesystem::path& path, const auto& at) {
  if constexpr (requires { at.line(); }) {
    return fmt::format("{}: line {}, column {}", path.string(), at.line(), at.column());
  } else {
    return fmt::format("{}: line {}, column {}", path.string(), at.first_line_number(),
                       at.first_column_number());
  }
}

const std::string& content(const auto& string) {
  if constexpr (requires { string.str; }) {
    return string.str;
  } else {
    return string;
  }
}

// Messages of toml11 begin with "[error] toml::function: " and end with an excerpt of the file.
std::string reason(const std::string& what) {
  const std::string line = what.substr(0, what.find('\n'));
  const size_t words = line.find(": ");
  return words == std::string::npos ? line : line.substr(words + 2);
}

[[noreturn]] void refuse(const std::filesystem::path& path, const auto& error) {
  constexpr const char* kExpected = ": expected TOML, but: ";
  if constexpr (requires { error.location(); }) {
    fail(place(path, error.location()) + kExpected + reason(error.what()));
  } else {
    const auto& first = error.errors().front();
    fail(place(path, first.locations().front().first) + kExpected + reason(first.title()));
  }
}

class Converter {
 public:
  explicit Converter(const std::filesystem::path& path) : path_(path) {}

  json convert(const toml::value& value, const std::string& key) const {
    switch (value.type()) {
      case toml::value_t::boolean:
        return value.as_boolean();
      case toml::value_t::integer:
        // Counts are unsigned, as in the JSON reader.
        if (value.as_integer() >= 0) return static_cast<uint64_t>(value.as_integer());
        return value.as_integer();
      case toml::value_t::floating:
        if (!std::isfinite(value.as_floating())) wrong(value, key, "a finite number");
        return value.as_floating();
      case toml::value_t::string:
        return content(value.as_string());
      case toml::value_t::array: {
        json array = json::array();
        for (const toml::value& element : value.as_array()) {
          array.push_back(convert(element, key));
        }
        return array;
      }
      case toml::value_t::table: {
        json object = json::object();
        for (const auto& [name, element] : value.as_table()) {
          object[name] = convert(element, key.empty() ? name : fmt::format("{}.{}", key, name));
        }
        return object;
      }
      default:
        wrong(value, key, "a number, a word, a list or a table");
    }
  }

 private:
  [[noreturn]] void wrong(const toml::value& value, const std::string& key,
                          const std::string& expected) const {
    std::ostringstream got;
    got << value.type();
    fail(fmt::format("{}: {}: expected {}, but got {}", place(path_, value.location()), key,
                     expected,
                     value.is_floating() ? fmt::format("{}", value.as_floating()) : got.str()));
  }

  const std::filesystem::path& path_;
};

}  // namespace

json read_settings_file(const std::filesystem::path& path) {
  if (path.extension() != ".toml") return read_json(path);
  std::istringstream text(read_file(path));
  try {
    return Converter(path).convert(toml::parse(text, path.string()), "");
  } catch (const toml::syntax_error& error) {
    refuse(path, error);
  }
}

}  // namespace sextant::lab
