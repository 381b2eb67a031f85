// The cache in C reads, saves and loads what C++ does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/c/decoded.h"

namespace sextant::testing {
namespace {

TEST(CCache, IsReadSavedAndLoaded) {
  const Decoded problem = {.rows = {130, 5}, .dtype = SEXTANT_INT8};
  InC c(problem);
  int64_t pages = 0, bytes = 0, id = -1;
  EXPECT_OK(sextant_cache_memory(c.cache.get(), &pages, &bytes));
  EXPECT_EQ(pages, 3 + 1);  // of 64 rows, two of them integers
  const int64_t page = kKeyHeads * 64 * (kKeyColumns + kValues);
  EXPECT_GE(bytes, 2 * page + 2 * 2 * page);

  const auto path = std::filesystem::path(::testing::TempDir()) / "c_cache_test.kv";
  EXPECT_OK(sextant_cache_save(c.cache.get(), c.sequences[0], path.c_str()));
  InC other(problem);
  EXPECT_OK(sextant_cache_load(other.cache.get(), path.c_str(), &id));
  std::filesystem::remove(path);
  const auto read = [](const InC& from, int64_t sequence) {
    std::vector<float> all(kKeyHeads * 100 * (kKeyColumns + kValues));
    const sextant_array k =
        sextant_contiguous(all.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 100, kKeyColumns);
    const sextant_array v = sextant_contiguous(all.data() + kKeyHeads * 100 * kKeyColumns,
                                               SEXTANT_FLOAT32, 1, kKeyHeads, 100, kValues);
    EXPECT_OK(sextant_cache_read(from.cache.get(), sequence, 30, &k, &v));
    return all;
  };
  EXPECT_NEAR(read(c, c.sequences[0])[0], wave(30 * kKeyColumns, 0.31), 0.02);
  EXPECT_EQ(read(other, id), read(c, c.sequences[0]));
}

}  // namespace
}  // namespace sextant::testing
