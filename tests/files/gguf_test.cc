#include "sextant/files/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string sample() {
  return gguf_bytes({{"general.architecture", std::string("llama")},
                     {"llama.rope.freq_base", 1e6},
                     {"llama.context_length", uint64_t{8192}},
                     {"some.flag", true}},
                    {{"rope_freqs.weight", {1, 1.5F, 8}}});
}

TEST(Gguf, ComesBackAsItWasWritten) {
  const Gguf gguf = parse_gguf(sample());
  EXPECT_EQ(std::get<std::string>(gguf.metadata.at("general.architecture")), "llama");
  EXPECT_EQ(std::get<double>(gguf.metadata.at("llama.rope.freq_base")), 1e6);
  EXPECT_EQ(std::get<uint64_t>(gguf.metadata.at("llama.context_length")), 8192u);
  EXPECT_TRUE(std::get<bool>(gguf.metadata.at("some.flag")));
  EXPECT_EQ(gguf.vectors.at("rope_freqs.weight"), (std::vector<float>{1, 1.5F, 8}));
}

// A truncated file is an error, unless only data of tensors is missing.
TEST(Gguf, EveryTruncationIsAnErrorOrLacksData) {
  const std::string whole = sample();
  for (size_t length = 0; length < whole.size(); ++length) {
    try {
      EXPECT_TRUE(parse_gguf(whole.substr(0, length)).vectors.empty()) << length;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("gguf: ")) << length;
    }
  }
}

TEST(Gguf, NoByteCanHarmIt) {
  const std::string whole = sample();
  std::mt19937_64 random(7);
  for (int n = 0; n < 20000; ++n) {
    std::string bytes = whole;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    try {
      parse_gguf(bytes);
    } catch (const Error&) {
      continue;  // named, and without a crash under the sanitizers
    }
  }
}

std::string header(uint32_t version, uint64_t tensors, uint64_t pairs) {
  std::string bytes = "GGUF";
  const auto put = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(version), put(tensors), put(pairs);
  return bytes;
}

TEST(Gguf, HugeNumbersAllocateNothing) {
  const auto error_of = [](const std::string& bytes, const char* words) {
    EXPECT_THAT([&] { parse_gguf(bytes); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of("GGUX", "gguf: magic");
  error_of(header(1, 0, 0), "gguf: version: expected 2 or 3, but got 1");
  error_of(header(3, UINT64_MAX, 0), "gguf: tensors: expected at most");
  error_of(header(3, 0, UINT64_MAX), "gguf: pairs: expected at most");
  const std::string key("\1\0\0\0\0\0\0\0k", 9);
  const std::string huge(8, '\xff');
  error_of(header(3, 0, 1) + huge, "gguf: key 0: expected a text of at most");
  error_of(header(3, 0, 1) + key + std::string("\x08\0\0\0", 4) + huge, "gguf: k: expected a text");
  error_of(header(3, 0, 1) + key + std::string("\x09\0\0\0\x04\0\0\0", 8) + huge,
           "gguf: k: expected at most");
  error_of(header(3, 0, 1) + key + std::string("\x09\0\0\0\x09\0\0\0", 8) + huge,
           "elements that are no arrays");
  error_of(header(3, 0, 1) + key + std::string("\x0d\0\0\0", 4), "a type from 0 to 12");
  error_of(header(3, 0, 1) + key + std::string("\x07\0\0\0\x02", 5), "0 or 1");
}

// A vocabulary's scores would take eight times their bytes.
TEST(Gguf, CountsLongArraysWithoutTheirNumbers) {
  std::string bytes = header(3, 0, 20);
  for (int n = 0; n < 20; ++n) {
    const uint64_t count = n == 0 ? 65537 : 65536;
    bytes += std::string("\1\0\0\0\0\0\0\0", 8) + static_cast<char>('a' + n);
    bytes += std::string("\x09\0\0\0\0\0\0\0", 8);
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes += std::string(count, '\1');
  }
  const Gguf gguf = parse_gguf(bytes);
  uint64_t kept = 0;
  for (const auto& [key, value] : gguf.metadata) {
    const auto& array = std::get<GgufArray>(value);
    EXPECT_EQ(array.count, key == "a" ? 65537 : 65536);
    EXPECT_TRUE(array.numbers.empty() || array.numbers.size() == array.count) << key;
    kept += array.numbers.size();
  }
  EXPECT_TRUE(std::get<GgufArray>(gguf.metadata.at("a")).numbers.empty());
  EXPECT_EQ(kept, uint64_t{1} << 20);
}

}  // namespace
}  // namespace sextant
