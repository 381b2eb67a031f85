#include "sextant/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/random.h"

namespace sextant {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A file with this header, valid or not, and `data` bytes of data.
std::string file_of(const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  return file + header + std::string(data, 'x');
}

std::string two_tensors() {
  const std::string bytes(24, '\1'), others(4, '\2');
  return safetensors_file({.tensors = {{"a", "F32", {2, 3}, bytes},
                                       {"empty", "F64", {0, 7}, ""},
                                       {"b", "I8", {4}, others}},
                           .metadata = {{"made_by", "a test"}}});
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::string file = two_tensors();
  const Safetensors content = parse_safetensors(file);
  ASSERT_EQ(content.tensors.size(), 3);
  EXPECT_EQ(content.tensors[0].name, "a");
  EXPECT_EQ(content.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(content.tensors[0].bytes, std::string(24, '\1'));
  EXPECT_EQ(content.tensors[1].name, "empty");
  EXPECT_EQ(content.tensors[2].bytes, std::string(4, '\2'));
  EXPECT_EQ(content.metadata.at("made_by"), "a test");
}

TEST(Safetensors, AlignsDataTo8Bytes) {
  const std::string file = two_tensors();
  uint64_t length = 0;
  std::copy_n(file.data(), 8, reinterpret_cast<char*>(&length));
  EXPECT_EQ(length % 8, 0);
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string file = two_tensors();
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse_safetensors(std::string_view(file).substr(0, size)), Error) << size;
  }
}

TEST(Safetensors, RefusesTrailingBytes) {
  EXPECT_THAT([] { parse_safetensors(two_tensors() + "x"); },
              ThrowsMessage<Error>(HasSubstr("data: expected 28 bytes, but got 29")));
}

TEST(Safetensors, ReadsOrRefusesEveryFlippedBit) {
  const std::string good = two_tensors();
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string file = good;
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
    try {
      for (const TensorBytes& tensor : parse_safetensors(file).tensors) {
        // Tensors lie within the file.
        ASSERT_GE(tensor.bytes.data(), file.data());
        ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), file.data() + file.size());
      }
    } catch (const Error&) {
    }
  }
}

struct Wrong {
  const char* header;
  const char* says;
  size_t data = 4;
};

class WrongHeader : public testing::TestWithParam<Wrong> {};

TEST_P(WrongHeader, IsRefusedWithItsReason) {
  const auto& [header, says, data] = GetParam();
  EXPECT_THAT([&] { parse_safetensors(file_of(header, data)); },
              ThrowsMessage<Error>(HasSubstr(says)))
      << header;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongHeader,
    testing::Values(
        Wrong{"", "expected { as its first byte"}, Wrong{" {}", "expected { as its first byte"},
        Wrong{"[]", "expected { as its first byte"}, Wrong{"{", "expected JSON"},
        Wrong{"{} {}", "expected JSON"}, Wrong{"{\"a\xff\":1}", "expected JSON"},
        Wrong{"{\"a\xc0\xaf\":1}", "expected JSON"},
        Wrong{"{}", "data: expected 0 bytes, but got 4"},
        Wrong{R"({"a":1})", "expected another kind of value, but got a number"},
        Wrong{R"({"a":{"dtype":"F32"}})", "tensor a: expected dtype, shape and data_offsets"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", "but got \"x\""},
        Wrong{R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", "but got a number"},
        Wrong{R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "but got F31"},
        Wrong{R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", "but got a number"},
        Wrong{R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "a negative number"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", "a fraction"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}})", "a fraction"},
        Wrong{R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", "a string"},
        Wrong{R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", "an array"},
        Wrong{R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4]}})",
              "a fraction"},
        Wrong{R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})",
              "a number of 64 bits"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})",
              "more than 8 numbers"},
        // Products that wrap to 0, to 4 and to a small value.
        Wrong{R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
              "tensor a: shape", 0},
        Wrong{R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})",
              "tensor a: shape"},
        Wrong{R"({"a":{"dtype":"F32","shape":[2147483648,2147483648,4],"data_offsets":[0,0]}})",
              "tensor a: shape", 0},
        Wrong{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "tensor a: shape"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
              "tensor a: data_offsets"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              "tensor a: data_offsets"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "tensor a: data_offsets"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})",
              "tensor a: data_offsets"},
        Wrong{R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
              "expected to begin where the one before ends (0), but got 1"},
        Wrong{R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
                  "b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
              "expected to begin where the one before ends (3), but got 2"},
        Wrong{R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                  "b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
              "expected to begin where the one before ends (1), but got 2"},
        Wrong{R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                  "\u0061":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
              "expected each name once, but got \"a\" twice"},
        Wrong{R"({"a":{"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]}})",
              "expected each name once, but got \"dtype\" twice"},
        Wrong{R"({"":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "name: expected"},
        Wrong{R"({"a\nb":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "name: expected"},
        Wrong{R"({"a\u0000":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "name: expected"},
        Wrong{R"({"__metadata__":[]})", "but got an array"},
        Wrong{R"({"__metadata__":{"a":1}})", "but got a number"},
        Wrong{R"({"__metadata__":{"a":{}}})", "but got an object"},
        Wrong{R"({"__metadata__":{},"__metadata__":{}})", "twice"},
        Wrong{R"({"a":null})", "but got null"}));

TEST(Safetensors, RefusesLengthsThatAreNotThere) {
  for (const uint64_t length : {uint64_t{3}, uint64_t{100'000'001}, uint64_t{1} << 31,
                                uint64_t{1} << 63, ~uint64_t{7}, ~uint64_t{0}}) {
    std::string file(reinterpret_cast<const char*>(&length), sizeof length);
    file += "{}";
    EXPECT_THAT([&] { parse_safetensors(file); },
                ThrowsMessage<Error>(HasSubstr("length: expected")));
  }
}

TEST(Safetensors, RefusesDepthAtOnce) {
  const std::string deep = R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THAT([&] { parse_safetensors(file_of(deep, 0)); },
              ThrowsMessage<Error>(HasSubstr("but got an array")));
}

TEST(Safetensors, WritesOnlyWhatItWouldRead) {
  const auto write = [](const TensorBytes& tensor) {
    return [tensor] { safetensors_file({.tensors = {tensor}, .metadata = {}}); };
  };
  EXPECT_THAT(write({"a", "F32", {2}, "1234"}), ThrowsMessage<Error>(HasSubstr("a: shape")));
  EXPECT_THAT(write({"a", "F32", {-1, -1}, "1234"}), ThrowsMessage<Error>(HasSubstr("a: shape")));
  EXPECT_THAT(write({"a", "F4", {2}, "1"}), ThrowsMessage<Error>(HasSubstr("a: dtype")));
  EXPECT_THAT(write({"", "U8", {1}, "1"}), ThrowsMessage<Error>(HasSubstr("name")));
  EXPECT_THROW(
      safetensors_file({.tensors = {{"a", "U8", {1}, "1"}, {"a", "U8", {1}, "1"}}, .metadata = {}}),
      Error);
}

}  // namespace
}  // namespace sextant
