#include "sextant/files/gzip.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/files/gunzip.h"

namespace sextant {
namespace {

RC_GTEST_PROP(Gzip, GivesBackWhatItWasGiven, (const std::string& bytes)) {
  RC_ASSERT(gunzip(gzip(bytes)) == bytes);
}

TEST(Gzip, TakesMoreThanItsBuffer) {
  std::string bytes;
  for (uint32_t n = 0; bytes.size() < (1 << 20); ++n) {
    bytes += std::to_string(n * 2654435761U);
  }
  const std::string packed = gzip(bytes);
  EXPECT_GT(packed.size(), size_t{1} << 17);
  EXPECT_LT(packed.size(), bytes.size());
  EXPECT_EQ(gunzip(packed), bytes);
}

TEST(Gzip, IsTheSameForTheSame) {
  EXPECT_EQ(gzip("a\n"), gzip("a\n"));
  EXPECT_EQ(gzip("").substr(4, 4), std::string(4, '\0')) << "no time in its head";
}

}  // namespace
}  // namespace sextant
