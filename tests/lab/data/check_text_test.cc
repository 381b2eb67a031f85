#include "sextant/lab/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sextant/base/error.h"
#include "sextant/base/unicode.h"
#include "sextant/files/gzip.h"
#include "tests/lab/synthetic_text.h"

namespace sextant::lab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr const char* kFile = "book.txt";

void refuses(const std::string& bytes, const auto& message) {
  EXPECT_THAT([&] { check_text(bytes, kFile); }, ThrowsMessage<Error>(message));
}

TEST(CheckText, EveryCharacterOfUnicodeIsText) {
  std::string text;
  for (char32_t code = 1; code <= 0x10ffff; ++code) {
    if (is_code_point(code)) append_utf8(text, code);
  }
  EXPECT_NO_THROW(check_text(text, kFile));
  EXPECT_NO_THROW(check_text("", kFile));
}

TEST(CheckText, AByteThatEndsACharacterTooEarlyIsCountedWhereItIs) {
  // Surrogates, overlong forms, code points above 0x10ffff, and characters cut by the end of the
  // file.
  for (const char* broken : {"\xed\xa0\x80", "\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80",
                             "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80", "\xff"}) {
    refuses(std::string("text ") + broken,
            AllOf(StartsWith("book.txt: "), HasSubstr("are not UTF-8, the first at offset 5")));
  }
}

TEST(CheckText, AFewBrokenBytesPass) {
  std::string text = synthetic_document(1, 10'000);
  for (size_t n = 0; n < 10; ++n) text[1000 * n + 7] = '\0';
  for (size_t n = 0; n < 1000; ++n) text[10 * n] = '\xe4';
  EXPECT_NO_THROW(check_text(text, kFile));
  text[5001] = '\0';
  refuses(text, HasSubstr("10000 bytes of which 11 are NUL, the first at offset 7"));
  text[5001] = '\xe4';
  refuses(text, HasSubstr("10000 bytes of which 1001 are not UTF-8, the first at offset 0"));
}

TEST(CheckText, ANulIsFoundAtAnyOffset) {
  for (size_t at = 0; at < 40; ++at) {
    std::string text(40, 'a');
    text[at] = '\0';
    refuses(text, HasSubstr("1 are NUL, the first at offset " + std::to_string(at)));
  }
}

TEST(CheckText, SaysWhatToDoWithFilesThatHoldText) {
  refuses(gzip(synthetic_document(1, 10'000)), HasSubstr("compressed by gzip; unpack it first"));
  refuses(std::string("\xff\xfet\0e\0x\0t\0", 10), HasSubstr("convert it to UTF-8"));
}

}  // namespace
}  // namespace sextant::lab
