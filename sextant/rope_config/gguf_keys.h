// Access to the metadata of one GGUF file that records each key that is requested. Keys about
// positions that are never requested are one Error that names them all.
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
  // A length in tokens or channels; 0 if it is missing. For an array, one element per layer, the
  // first positive one.
  int64_t length(const std::string& key);
  // Integers, or booleans as 1 and 0; a single number is an array of one.
  std::vector<int64_t> integers(const std::string& key);
  bool has(const std::string& key) const { return gguf_.metadata.contains(key); }
  void skip(const std::string& key) { seen_.insert(key); }

  // Throws Error if keys about rotary positions were never requested.
  void finish() const;

 private:
  const GgufValue* find(const std::string& key);
  bool is_about_positions(const std::string& key) const;

  const Gguf& gguf_;
  std::set<std::string> seen_;
  std::string arch_;
};

// GGUF files of other programs than llama.cpp, which it does not run as their programs do.

// Throws an Error that names the program if the file has an architecture or keys of its own, or
// lacks a base that llama.cpp's converter always writes. base: given beside the file, or 0.
void refuse_other_programs(GgufKeys& keys, double base);

}  // namespace sextant
