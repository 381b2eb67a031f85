// Checks that the cache and its batches share. Errors begin with "kv cache: ".
#pragma once

#include <cstdint>
#include <string>

namespace sextant::cache_checks {

// "kv cache: FIELD: expected EXPECTED, but got GOT"
[[noreturn]] void bad(const std::string& field, const std::string& expected, int64_t got);
void expect_between(const std::string& field, int64_t got, int64_t low, int64_t high);

}  // namespace sextant::cache_checks
