// The names of an enumeration's values, in files and on the command line.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "sextant/base/error.h"

namespace sextant {

template <class T, size_t N>
using Names = std::array<std::pair<T, const char*>, N>;

template <class T, size_t N>
const char* name_in(const Names<T, N>& names, T value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return "";
}

// Throws Error that begins with `where` and lists the names for another one.
template <class T, size_t N>
T value_named(const Names<T, N>& names, const std::string& where, const std::string& name) {
  std::string known;
  for (const auto& [value, its_name] : names) {
    if (name == its_name) return value;
    known += (known.empty() ? "" : ", ") + std::string(its_name);
  }
  fail(where + ": expected one of " + known + ", but got " + name);
}

}  // namespace sextant
