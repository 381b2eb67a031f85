#include "sextant/lab/settings_file.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <toml.hpp>

#include "sextant/error.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/result.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

std::string place(const std::filesystem::path& path, const toml::source_location& at) {
  return fmt::format("{}: line {}, column {}", path.string(), at.line(), at.column());
}

// toml11's words begin with "[error] toml::function: " and end with a drawing of the place.
std::string reason(const std::string& what) {
  const std::string line = what.substr(0, what.find('\n'));
  const size_t words = line.find(": ");
  return words == std::string::npos ? line : line.substr(words + 2);
}

class Converter {
 public:
  explicit Converter(const std::filesystem::path& path) : path_(path) {}

  json convert(const toml::value& value, const std::string& key) const {
    switch (value.type()) {
      case toml::value_t::boolean:
        return value.as_boolean();
      case toml::value_t::integer:
        // As JSON's reader does: counts are unsigned there.
        if (value.as_integer() >= 0) return static_cast<uint64_t>(value.as_integer());
        return value.as_integer();
      case toml::value_t::floating:
        if (!std::isfinite(value.as_floating())) wrong(value, key, "a finite number");
        return value.as_floating();
      case toml::value_t::string:
        return value.as_string().str;
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
  } catch (const toml::exception& error) {
    fail(place(path, error.location()) + ": expected TOML, but: " + reason(error.what()));
  }
}

}  // namespace sextant::lab
