#include "sextant/cache/cache_checks.h"

#include "sextant/base/error.h"

namespace sextant::cache_checks {

[[noreturn]] void bad(const std::string& field, const std::string& expected, int64_t got) {
  fail("kv cache: " + field + ": expected " + expected + ", but got " + std::to_string(got));
}

void expect_between(const std::string& field, int64_t got, int64_t low, int64_t high) {
  if (got < low || got > high) bad(field, std::to_string(low) + " to " + std::to_string(high), got);
}

}  // namespace sextant::cache_checks
