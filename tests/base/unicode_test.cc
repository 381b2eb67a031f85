#include "sextant/base/unicode.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

TEST(Unicode, EveryCodePointComesBack) {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (!is_code_point(code)) continue;
    std::string text;
    append_utf8(text, code);
    std::string_view rest = text;
    ASSERT_EQ(take_code_point(rest), code);
    ASSERT_EQ(rest, "");
  }
}

TEST(Unicode, WhatIsNoUtf8IsRefused) {
  for (const char* text : {"\x80", "\xc0\x80", "\xc3", "\xc3(", "\xe2\x82", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xe2\x82\x41"}) {
    std::string_view rest = text;
    EXPECT_EQ(take_code_point(rest), std::nullopt) << text;
    EXPECT_EQ(rest, text);
  }
}

}  // namespace
}  // namespace sextant
