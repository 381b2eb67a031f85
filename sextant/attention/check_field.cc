#include "sextant/attention/check_field.h"

#include "sextant/base/error.h"

namespace sextant {

std::string text(int64_t value) { return std::to_string(value); }

void refuse_field(const Field& field, std::string_view expected, std::string_view got) {
  std::string message = "attention: ";
  for (const std::string_view part : {field.of, field.member, std::string_view(": expected "),
                                      expected, std::string_view(", but got "), got})
    message += part;
  fail(message);
}

void refuse_field(std::string_view field, std::string_view expected, std::string_view got) {
  refuse_field(Field{field}, expected, got);
}

void refuse_equal(const Field& field, int64_t got, int64_t expected, const char* why) {
  refuse_field(field, text(expected) + " (" + why + ")", text(got));
}

void refuse_between(const Field& field, int64_t got, int64_t low, int64_t high) {
  refuse_field(field, text(low) + " to " + text(high), text(got));
}

}  // namespace sextant
