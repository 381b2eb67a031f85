// Errors of operands and plans: "attention: FIELD: expected EXPECTED, but got GOT". A message is
// made in functions of its own: g++ would inline it at each check, which took a tenth of the core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sextant {

std::string text(int64_t value);

// The name of a field, whose parts are joined only if there is an error.
struct Field {
  std::string_view of, member = {};
};

[[noreturn]] void refuse_field(const Field& field, std::string_view expected, std::string_view got);
[[noreturn]] void refuse_field(std::string_view field, std::string_view expected,
                               std::string_view got);
// "EXPECTED (WHY)" and "LOW to HIGH"
[[noreturn]] void refuse_equal(const Field& field, int64_t got, int64_t expected, const char* why);
[[noreturn]] void refuse_between(const Field& field, int64_t got, int64_t low, int64_t high);

inline void expect_equal(const Field& field, int64_t got, int64_t expected, const char* why) {
  if (got != expected) refuse_equal(field, got, expected, why);
}

inline void expect_between(const Field& field, int64_t got, int64_t low, int64_t high) {
  if (got < low || got > high) refuse_between(field, got, low, high);
}

}  // namespace sextant
