#include "sextant/base/unicode.h"

#include <cstddef>

namespace sextant {

bool is_code_point(char32_t code) { return code <= 0x10ffff && (code < 0xd800 || code >= 0xe000); }

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  const auto put_rest = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put_rest(0);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xf0 | code >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

std::optional<char32_t> take_code_point(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t code = length == 1 ? lead : lead & (0xffU >> (length + 1));
  for (const char c : text.substr(1, length - 1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  // Encodes again and compares, which detects every error: a stray byte, an overlong form, a
  // truncated sequence.
  std::string again;
  if (is_code_point(code)) append_utf8(again, code);
  if (again != text.substr(0, length)) return std::nullopt;
  text.remove_prefix(length);
  return code;
}

}  // namespace sextant
