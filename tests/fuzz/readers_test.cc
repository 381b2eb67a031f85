// A reader of files returns a value or throws Error on any bytes. The bytes are deterministic
// mutations of valid files, the same in every run; the preset asan runs them under the sanitizers.
#include "fuzz/readers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <typeinfo>

#include "sextant/base/error.h"

namespace sextant::fuzz {
namespace {

constexpr int kMutants = 20000;

class Mutator {
 public:
  Mutator(std::vector<std::string> samples, uint64_t seed)
      : samples_(std::move(samples)), random_(seed) {}

  std::string next() {
    std::string bytes = any_sample();
    for (uint64_t changes = 1 + below(4); changes > 0; --changes) change(bytes);
    return bytes;
  }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  const std::string& any_sample() { return samples_[below(samples_.size())]; }

  void change(std::string& bytes) {
    const size_t at = below(bytes.size() + 1), left = bytes.size() - at;
    switch (below(8)) {
      case 0:  // one bit
        if (left > 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        return;
      case 1:  // one byte
        if (left > 0) bytes[at] = static_cast<char>(random_());
        return;
      case 2:
        return overwrite(bytes, at);
      case 3:
        bytes.resize(at);
        return;
      case 4:
        bytes.erase(at, 1 + below(16));
        return;
      case 5:
        bytes.insert(at, 1 + below(16), static_cast<char>(random_()));
        return;
      case 6: {  // a piece of any sample, this one included
        const std::string& other = any_sample();
        bytes.insert(at, other.substr(below(other.size() + 1), 1 + below(40)));
        return;
      }
      default:
        return reword(bytes, at);
    }
  }

  // Writes an integer of 1, 2, 4 or 8 bytes near a limit of sizes.
  void overwrite(std::string& bytes, size_t at) {
    constexpr uint64_t kNumbers[] = {0,
                                     1,
                                     0x7F,
                                     0x80,
                                     0xFFFF,
                                     0x7FFFFFFF,
                                     0x80000000,
                                     0xFFFFFFFF,
                                     uint64_t{1} << 32,
                                     uint64_t{1} << 62,
                                     ~uint64_t{0} >> 1,
                                     ~uint64_t{0}};
    const uint64_t number = kNumbers[below(std::size(kNumbers))] + below(3) - 1;
    const size_t width = std::min<size_t>(size_t{1} << below(4), bytes.size() - at);
    std::memcpy(bytes.data() + at, &number, width);
  }

  // Inserts or writes text that is difficult for parsers of JSON and flags.
  void reword(std::string& bytes, size_t at) {
    constexpr const char* kWords[] = {
        "null",   "-1",       "0",       "1e999",    "-0.0",
        "1e-320", "[",        "{",       "\"",       "}",
        "true",   "NaN",      "\\u0000", "[[[[[[[[", "9223372036854775808",
        "factor", "\xff\xfe", "\n"};
    const std::string word = kWords[below(std::size(kWords))];
    if (below(2) == 0) {
      bytes.insert(at, word);
    } else {
      bytes.replace(at, word.size(), word);
    }
  }

  std::vector<std::string> samples_;
  std::mt19937_64 random_;
};

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char c : bytes) {
    text += "0123456789abcdef"[c >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

class EveryReader : public ::testing::TestWithParam<Reader> {};
INSTANTIATE_TEST_SUITE_P(All, EveryReader, ::testing::ValuesIn(readers().begin(), readers().end()),
                         [](const auto& info) {
                           std::string title = info.param.name;
                           std::ranges::replace(title, '-', '_');
                           return title;
                         });

TEST_P(EveryReader, ReadsItsSamples) {
  for (const std::string& sample : GetParam().samples()) {
    EXPECT_NO_THROW(GetParam().read(sample));
    std::string sealed = sample;
    if (GetParam().seal) GetParam().seal(sealed);
    EXPECT_EQ(sealed, sample) << "sealing a whole file changes nothing";
  }
}

TEST_P(EveryReader, ReadsMutantsOrSaysWhatIsWrong) {
  const Reader& reader = GetParam();
  Mutator mutator(reader.samples(), 1);
  int refused = 0;
  for (int n = 0; n < kMutants; ++n) {
    std::string mutant = mutator.next();
    if (reader.seal && n % 4 != 0) reader.seal(mutant);
    try {
      reader.read(mutant);
    } catch (const Error& error) {
      ++refused;
      EXPECT_FALSE(std::string(error.what()).empty());
    } catch (const std::exception& other) {
      FAIL() << typeid(other).name() << ": " << other.what() << "\nmutant " << n << ": "
             << hex(mutant);
    }
  }
  // Most mutants are invalid; but if all were refused, the mutations would test the first check
  // only.
  EXPECT_GT(refused, kMutants / 4);
  EXPECT_LT(refused, kMutants);
}

}  // namespace
}  // namespace sextant::fuzz
