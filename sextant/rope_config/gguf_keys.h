// The metadata of one GGUF file: each key that is asked for is noted, and keys about positions
// that nobody asked for are one Error that names them all.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sextant/files/gguf.h"

namespace sextant {

class GgufKeys {
 public:
  explicit GgufKeys(const Gguf& gguf);

  const Gguf& gguf() const { return gguf_; }
  const std::string& arch() const { return arch_; }
  std::string own(const std::string& key) const { return arch_ + "." + key; }

  [[noreturn]] static void bad(const std::string& key, const std::string& expected);

  std::optional<std::string> text(const std::string& key);
  std::optional<bool> flag(const std::string& key);
  std::optional<double> number(const std::string& key, double low, double high);
  // A length in tokens or channels; 0: not said. Of an array, one for each layer, the first.
  int64_t length(const std::string& key);
  // Whole numbers or true and false (1 and 0); one number is an array of one.
  std::vector<int64_t> integers(const std::string& key);
  bool has(const std::string& key) const { return gguf_.metadata.contains(key); }
  void skip(const std::string& key) { seen_.insert(key); }

  // Throws Error if keys about rotary positions are left.
  void finish() const;

 private:
  const GgufValue* find(const std::string& key);
  bool is_about_positions(const std::string& key) const;

  const Gguf& gguf_;
  std::set<std::string> seen_;
  std::string arch_;
};

}  // namespace sextant
