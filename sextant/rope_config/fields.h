// Strict access to a JSON object of a foreign configuration: it records each field that is
// requested. Fields that are never requested or have a wrong type or range are Errors that name the
// field.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sextant {

class Fields {
 public:
  // Keeps a reference to `object`, which must outlive it. `where` begins each message. Throws Error
  // if `object` is not an object.
  Fields(const nlohmann::json& object, std::string where);

  // null counts as absent.
  bool has(const std::string& name) const;
  // Returns null if the field is absent; does not mark it as requested.
  nlohmann::json value(const std::string& name) const;

  std::optional<double> number(const std::string& name, double low, double high);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<bool> flag(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  std::vector<double> numbers(const std::string& name, double low, double high);
  std::vector<int64_t> integers(const std::string& name, int64_t low, int64_t high);
  const nlohmann::json* object(const std::string& name);

  double needed_number(const std::string& name, double low, double high);
  int64_t needed_integer(const std::string& name, int64_t low, int64_t high);

  bool was_asked(const std::string& name) const { return seen_.contains(name); }

  // Accepts a field that says nothing about positions.
  void skip(const std::string& name) { seen_.insert(name); }

  // Throws Error if there are fields that were never requested.
  void finish() const;

  [[noreturn]] void bad(const std::string& name, const std::string& expected) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json* find(const std::string& name);

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> seen_;
};

}  // namespace sextant
