#include "sextant/files/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// A version 1 file with this header and these elements.
std::vector<std::byte> file(const std::string& header, std::string_view elements) {
  std::string text = "\x93NUMPY";
  text += std::string("\1\0", 2);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return bytes_of(text + header + std::string(elements));
}

std::string complaint_about(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

std::string complaint_about(const std::vector<std::byte>& bytes) {
  return complaint_about([&] { parse_npy(bytes, "test"); });
}

std::vector<Array> one_of_each_type() {
  return {
      {{2, 3},
       std::vector<double>{0.1, -0.0, 1e300, 5e-324, std::numeric_limits<double>::infinity(), 7}},
      {{2}, std::vector<float>{0.1F, -3e38F}},
      {{1, 1, 2}, std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 42}},
      {{2}, std::vector<int32_t>{std::numeric_limits<int32_t>::min(), 42}},
      {{1}, std::vector<uint64_t>{std::numeric_limits<uint64_t>::max()}},
      {{3}, std::vector<uint8_t>{0, 1, 255}},
      {{3}, std::vector<bool>{true, false, true}},
      {{2}, std::vector<std::string>{"Grüße, 世界 \U0001f600", ""}},
      {{}, std::vector<std::string>{"{\"method\": \"none\"}"}},
      {{}, std::vector<double>{3.5}},
      {{0, 3}, std::vector<float>{}},
      {{0}, std::vector<std::string>{}},
  };
}

TEST(Npy, EveryTypeComesBackAsItWasWritten) {
  for (const Array& array : one_of_each_type()) {
    EXPECT_EQ(parse_npy(format_npy(array), "test"), array);
  }
}

TEST(Npy, ElementsStartAtAMultipleOf64) {
  const Array array{{5}, std::vector<uint8_t>{1, 2, 3, 4, 5}};
  EXPECT_EQ(format_npy(array).size() % 64, 5U);
}

TEST(Npy, ReadsWhatNumPyWrites) {
  const std::string one("\0\0\0\0\0\0\xf0\x3f", 8);
  const Array array = parse_npy(
      file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }    \n", one), "test");
  EXPECT_EQ(array, (Array{{1}, std::vector<double>{1.0}}));
}

TEST(Npy, KeysMayComeInAnyOrderAndWithEitherQuote) {
  const Array array =
      parse_npy(file("{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}", "ab"), "test");
  EXPECT_EQ(array, (Array{{2}, std::vector<uint8_t>{'a', 'b'}}));
}

TEST(Npy, HeadersOfVersions2And3HaveAWiderLength) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': ()}";
  for (const char major : {'\2', '\3'}) {
    std::string text = "\x93NUMPY";
    text += major;
    text += '\0';
    text += static_cast<char>(header.size());
    text += std::string(3, '\0');
    EXPECT_EQ(parse_npy(bytes_of(text + header + "x"), "test"),
              (Array{{}, std::vector<uint8_t>{'x'}}));
  }
}

TEST(Npy, FortranOrderIsTurnedIntoCOrder) {
  // The rows are 0 1 2 / 3 4 5, stored by columns.
  const Array array = parse_npy(file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}",
                                     std::string("\0\3\1\4\2\5", 6)),
                                "test");
  EXPECT_THAT(std::get<std::vector<uint8_t>>(array.elements), ElementsAre(0, 1, 2, 3, 4, 5));

  // With three axes, element (i, j, k) holds its index in the file, i + 2 j + 6 k.
  std::string places;
  for (char place = 0; place < 24; ++place) places += place;
  const Array cube = parse_npy(
      file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", places), "test");
  const auto& elements = std::get<std::vector<uint8_t>>(cube.elements);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) EXPECT_EQ(elements[(i * 3 + j) * 4 + k], i + 2 * j + 6 * k);
    }
  }
}

TEST(Npy, AFileCutAnywhereIsRefused) {
  for (const Array& array : one_of_each_type()) {
    const auto whole = format_npy(array);
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_THROW(parse_npy(std::span(whole).first(length), "test"), Error) << length;
    }
  }
}

TEST(Npy, AFileWithMoreBehindItIsRefused) {
  for (const Array& array : one_of_each_type()) {
    auto bytes = format_npy(array);
    bytes.resize(bytes.size() + 1);
    EXPECT_THROW(parse_npy(bytes, "test"), Error);
  }
}

// With any one byte changed, the parser refuses the file or returns as many elements as the shape
// has.
TEST(Npy, AnyChangedByteIsRefusedOrRead) {
  for (const Array& array : one_of_each_type()) {
    const auto whole = format_npy(array);
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        auto bytes = whole;
        bytes[at] ^= static_cast<std::byte>(change);
        try {
          const Array got = parse_npy(bytes, "test");
          int64_t count = 1;
          for (const int64_t axis : got.shape) count *= axis;
          EXPECT_EQ(std::visit([](const auto& e) { return e.size(); }, got.elements),
                    static_cast<size_t>(count));
        } catch (const Error&) {
        }
      }
    }
  }
}

TEST(Npy, ErrorsNameTheFileTheFieldAndTheByte) {
  EXPECT_EQ(complaint_about(bytes_of("PK\3\4...")),
            "npy: test: magic: expected \\x93NUMPY, but got no .npy file (byte 6)");
  EXPECT_EQ(complaint_about(bytes_of("")),
            "npy: test: magic: expected 6 bytes, but got the end after 0 (byte 0)");
}

struct Malformed {
  const char* header;
  const char* expected;  // part of the message
};

class NpyHeader : public testing::TestWithParam<Malformed> {};

TEST_P(NpyHeader, IsRefusedWithAReason) {
  const std::string elements(16, '\0');
  EXPECT_THAT(complaint_about(file(GetParam().header, elements)), HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Malformed, NpyHeader,
    testing::Values(
        Malformed{"", "header: expected '{', but got the end of the header"},
        Malformed{"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "but got '|O'"},
        Malformed{"{'descr': '>f8', 'fortran_order': False, 'shape': (2,)}", "but got '>f8'"},
        Malformed{"{'descr': '<f2', 'fortran_order': False, 'shape': (8,)}", "but got '<f2'"},
        Malformed{"{'descr': '<c16', 'fortran_order': False, 'shape': (1,)}", "but got '<c16'"},
        Malformed{"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}",
                  "descr: expected a string, but got '['"},
        Malformed{"{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}", "True or False"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': 2}", "shape: expected '('"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}", "but got '-'"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (2.0,)}", "but got '.'"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (2L,)}", "but got '2L'"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (1e1,)}", "but got '1e1'"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': ((2,),)}", "but got '('"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", "at most 2 elements"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
                  "expected 8 bytes, but got 16"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}",
                  "expected 0 bytes, but got 16"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                  "at most 2 elements"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4611686018427387904, 4)}",
                  "at most 2 elements"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808,)}",
                  "numbers below 2^63"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551618,)}",
                  "numbers below 2^63"},
        Malformed{"{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999,)}",
                  "a length above 0"},
        Malformed{"{'descr': '<U', 'fortran_order': False, 'shape': (4,)}", "a length above 0"},
        Malformed{"{'descr': '<U99999999999999999999', 'fortran_order': False, 'shape': (4,)}",
                  "a length up to 2^28"},
        Malformed{"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
                  "once each, but got 'descr'"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'more': 1}",
                  "but got 'more'"},
        Malformed{"{'fortran_order': False, 'shape': (2,)}", "descr: expected"},
        Malformed{"{'descr': '<f8', 'shape': (2,)}", "fortran_order: expected"},
        Malformed{"{'descr': '<f8', 'fortran_order': False}", "shape: expected"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (2,)} x", "nothing after"},
        Malformed{"{'descr': '<f8', 'fortran_order': False, 'shape': (2,)", "'}'"},
        Malformed{"{'descr': '<f\\x38', 'fortran_order': False, 'shape': (2,)}", "plain ASCII"},
        Malformed{"{'descr': '<f8", "plain ASCII, but got the end of the header"}));

TEST(Npy, AHeaderLongerThanTheFileIsRefusedBeforeItIsRead) {
  std::string text = "\x93NUMPY";
  text += std::string("\2\0\xff\xff\xff\xff", 6);
  EXPECT_THAT(complaint_about(bytes_of(text + "{}")),
              HasSubstr("header length: expected at most 2, the bytes that follow"));
}

TEST(Npy, UnknownVersionsAreRefused) {
  std::string text = "\x93NUMPY";
  text += std::string("\4\0\0\0\0\0", 6);
  EXPECT_THAT(complaint_about(bytes_of(text)), HasSubstr("version: expected 1.0, 2.0 or 3.0"));
}

TEST(Npy, TruthsOtherThan0And1AreRefused) {
  EXPECT_THAT(
      complaint_about(file("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\2")),
      HasSubstr("truths of 0 or 1"));
}

TEST(Npy, TextThatIsNoUnicodeIsRefused) {
  const std::string header = "{'descr': '<U1', 'fortran_order': False, 'shape': ()}";
  EXPECT_THAT(complaint_about(file(header, std::string("\0\xd8\0\0", 4))), HasSubstr("55296"));
  EXPECT_THAT(complaint_about(file(header, std::string("\0\0\x11\0", 4))), HasSubstr("1114112"));
}

TEST(Npy, AShapeThatDoesNotHoldTheElementsIsNotWritten) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {3}, {-2}, {-2, -1}, {int64_t{1} << 62, 4}}) {
    EXPECT_THROW(format_npy({shape, std::vector<double>{1, 2}}), Error);
  }
}

TEST(Npy, FilesComeBackAndWhatIsNoFileIsRefused) {
  const auto directory = std::filesystem::path(testing::TempDir()) / "npy_test";
  std::filesystem::create_directories(directory);
  const Array array{{2}, std::vector<double>{1, 2}};
  write_npy(directory / "a.npy", array);
  EXPECT_EQ(read_npy(directory / "a.npy"), array);
  EXPECT_THROW(read_npy(directory / "missing.npy"), Error);
  EXPECT_THROW(read_npy(directory), Error);
  EXPECT_THROW(read_npy("/dev/zero"), Error);
  EXPECT_THROW(write_npy(directory / "a.npy" / "b.npy", array), Error);
}

}  // namespace
}  // namespace sextant
