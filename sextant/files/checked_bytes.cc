#include "sextant/files/checked_bytes.h"

#include "sextant/base/error.h"

namespace sextant {

void ByteReader::wrong(const char* field, uint64_t at, const std::string& expected) const {
  fail(std::string(what_) + ": " + field + " at byte " + std::to_string(at) + ": expected " +
       expected);
}

std::string_view ByteReader::take(const char* field, uint64_t count) {
  if (count > left())
    wrong(field, at_, std::to_string(count) + " bytes, but got " + std::to_string(left()));
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  at_ += count;
  return taken;
}

void ByteReader::expect_text(const char* field, std::string_view expected) {
  const uint64_t at = at_;
  if (take(field, expected.size()) != expected) wrong(field, at, std::string(expected));
}

}  // namespace sextant
