// A JSON object of a foreign configuration, read strictly: each field that is asked for is noted,
// and one that nobody asked for, or that is not what it should be, is an Error that names it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sextant {

class Fields {
 public:
  // Looks into `object`, which lives as long. `where` begins each message. Throws Error unless it
  // is one.
  Fields(const nlohmann::json& object, std::string where);

  // null counts as absent.
  bool has(const std::string& name) const;

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

  // It may be there, and says nothing about positions.
  void skip(const std::string& name) { seen_.insert(name); }

  // Fails if there are fields that nobody asked for.
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
