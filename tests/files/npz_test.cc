#include "sextant/files/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using testing::HasSubstr;

class Npz : public testing::Test {
 protected:
  Npz()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("npz_test." + std::to_string(getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  ~Npz() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path path() const { return directory_ / "a.npz"; }

  std::string written(const Arrays& arrays) const {
    write_npz(path(), arrays);
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Arrays read(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return read_npz(path());
  }

  std::string complaint_about(const std::string& bytes) const {
    try {
      read(bytes);
    } catch (const Error& error) {
      return error.what();
    }
    return "no complaint";
  }

 private:
  std::filesystem::path directory_;
};

Arrays some() {
  return {{"x", {{2, 2}, std::vector<double>{1, 2, 3, 4}}},
          {"meta", {{}, std::vector<std::string>{"{}"}}},
          {"param_a.b/c", {{1}, std::vector<int64_t>{7}}}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST_F(Npz, ArraysComeBackUnderTheirNames) { EXPECT_EQ(read(written(some())), some()); }

TEST_F(Npz, TheSameArraysGiveTheSameBytes) { EXPECT_EQ(written(some()), written(some())); }

TEST_F(Npz, AFileCutAnywhereIsRefused) {
  const std::string whole = written(some());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(read(whole.substr(0, length)), Error) << length;
  }
}

// A changed byte may be in an ignored field (a date, a version); the arrays must be right
// nevertheless.
TEST_F(Npz, AnyChangedByteIsRefusedOrHarmless) {
  const std::string whole = written(some());
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 128, 255}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      try {
        for (const auto& [name, array] : read(bytes)) {
          if (some().contains(name)) {
            EXPECT_EQ(array, some()[name]) << at;
          }
        }
      } catch (const Error&) {
      }
    }
  }
}

TEST_F(Npz, NamesThatAreNoArraysAreRefused) {
  const std::string whole = written(some());
  EXPECT_THAT(complaint_about(replaced(whole, "x.npy", "x.txt")),
              HasSubstr("names that end in .npy, but got 'x.txt'"));
  EXPECT_THAT(complaint_about(replaced(whole, "x.npy", "\n.npy")), HasSubstr("control characters"));
}

TEST_F(Npz, ANameThatComesTwiceIsRefused) {
  const Arrays two{{"a", {{}, std::vector<double>{1}}}, {"b", {{}, std::vector<double>{2}}}};
  EXPECT_THROW(read(replaced(written(two), "b.npy", "a.npy")), Error);
}

TEST_F(Npz, AnArchiveThatUnpacksToMoreThanAllowedIsRefused) {
  written({{"zeros", {{100000}, std::vector<double>(100000)}}});
  EXPECT_EQ(read_npz(path(), 900000).size(), 1U);
  EXPECT_THROW(read_npz(path(), 800000), Error);
}

TEST_F(Npz, AnEntryThatClaimsMoreThanDeflateCanPackIsRefused) {
  // The uncompressed size of the only entry is 24 bytes into its central header and 22 bytes into
  // its local header.
  std::string bytes = written({{"x", {{2}, std::vector<double>{1, 2}}}});
  const size_t header = bytes.rfind("PK\1\2");
  ASSERT_NE(header, std::string::npos);
  for (const size_t at : {header + 24, size_t{22}}) bytes.replace(at, 4, "\xff\xff\xff\x0f");
  EXPECT_THROW(read(bytes), Error);
}

TEST_F(Npz, WhatIsNoFileIsRefused) {
  EXPECT_THROW(read_npz(path()), Error);
  EXPECT_THROW(read_npz(path().parent_path()), Error);
  EXPECT_THROW(read_npz("/dev/zero"), Error);
  EXPECT_THAT(complaint_about("PK"), HasSubstr("expected a zip archive"));
}

TEST_F(Npz, WhatCannotBeWrittenIsSaid) {
  EXPECT_THROW(write_npz(path(), {}), Error);
  EXPECT_THROW(write_npz(path(), {{"a\n", {{}, std::vector<double>{1}}}}), Error);
  EXPECT_THROW(write_npz(path() / "x.npz", some()), Error);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace sextant
