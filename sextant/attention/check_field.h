// Errors of operands and plans: "attention: FIELD: expected EXPECTED, but got GOT".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sextant/base/error.h"

namespace sextant {

inline std::string text(int64_t value) { return std::to_string(value); }

[[noreturn]] inline void refuse_field(const std::string& field, const std::string& expected,
                                      const std::string& got) {
  fail("attention: " + field + ": expected " + expected + ", but got " + got);
}

// The name of a field, which is concatenated only if there is an error.
struct Field {
  std::string_view of, member = {};

  std::string name() const { return std::string(of) + std::string(member); }
};

inline void expect_equal(const Field& field, int64_t got, int64_t expected, const char* why) {
  if (got != expected) refuse_field(field.name(), text(expected) + " (" + why + ")", text(got));
}

inline void expect_between(const Field& field, int64_t got, int64_t low, int64_t high) {
  if (got < low || got > high)
    refuse_field(field.name(), text(low) + " to " + text(high), text(got));
}

}  // namespace sextant
