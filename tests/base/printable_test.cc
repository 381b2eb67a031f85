#include "sextant/base/printable.h"

#include <gtest/gtest.h>

#include "sextant/base/unicode.h"

namespace sextant {
namespace {

TEST(Printable, HidesWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[31mred\x1b[0m"), "a\\u001b[31mred\\u001b[0m");
  EXPECT_EQ(printable("one\r\n\ttwo\x7f"), "one\\r\\n\\ttwo\\u007f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt.\xe2\x81\xa6\xe2\x80\xa8"),
            "\\u202etxt.\\u2066\\u2028");
}

TEST(Printable, KeepsAllOtherCharacters) {
  size_t hidden = 0;
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (!is_code_point(code)) continue;
    std::string text;
    append_utf8(text, code);
    const std::string shown = printable(text);
    ASSERT_EQ(printable(shown), shown);
    hidden += shown == text ? 0 : 1;
  }
  EXPECT_EQ(hidden, 32 + 33 + 7 + 4) << "C0, DEL and C1, U+2028 to 202E, U+2066 to 2069";
  EXPECT_EQ(printable("Größe ± ∞, 位置编码, עברית, 🧭"),
            "Größe ± ∞, 位置编码, עברית, 🧭");
}

TEST(Printable, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\x9b"
                      "b\xff"),
            "a�b�");
  EXPECT_EQ(printable("ab\xe2\x82"), "ab��");
}

TEST(Printable, LinesOfATextStay) {
  EXPECT_EQ(printable_lines("a\tb\nc\r\x1b"), "a\tb\nc\\r\\u001b");
}

TEST(Printable, NoLineOfAMessagePassesForAnother) {
  EXPECT_EQ(printable_message("x: expected y, but got z\nsextant: all is well\n"),
            "x: expected y, but got z\n  sextant: all is well\n");
  EXPECT_EQ(printable_message("differs:\n  own line\n\n c"), "differs:\n  own line\n  \n   c");
}

}  // namespace
}  // namespace sextant
