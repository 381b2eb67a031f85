#include "sextant/base/unicode.h"

#include <gtest/gtest.h>

#include "sextant/base/error.h"

namespace sextant {
namespace {

TEST(Unicode, EveryCodePointComesBack) {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (!is_code_point(code)) continue;
    std::string text;
    append_utf8(text, code);
    ASSERT_EQ(code_points(text), std::u32string(1, code)) << static_cast<uint32_t>(code);
  }
}

TEST(Unicode, WhatIsNoUtf8IsRefused) {
  for (const char* text : {"\x80", "\xc0\x80", "\xc3", "\xc3(", "\xe2\x82", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "a\xe2\x82\x41"}) {
    EXPECT_THROW(code_points(text), Error) << text;
  }
}

}  // namespace
}  // namespace sextant
