#include "sextant/cache/cache_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/write_file.h"
#include "tests/lab/temporary_folder.h"

namespace sextant {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr KvCacheShape kShape = {
    .key_heads = 2, .key_columns = 8, .value_columns = 3, .page_rows = 16};
constexpr int64_t kRows = 21;

struct Content {
  std::vector<float> k, v;

  explicit Content(int64_t rows)
      : k(static_cast<size_t>(kShape.key_heads * rows * kShape.key_columns)),
        v(static_cast<size_t>(kShape.key_heads * rows * kShape.value_columns)),
        rows_(rows) {}

  template <class T = float>
  View<T> keys() {
    return view<T>(k.data(), kShape.key_columns);
  }
  template <class T = float>
  View<T> values() {
    return view<T>(v.data(), kShape.value_columns);
  }

 private:
  template <class T>
  View<T> view(float* data, int64_t columns) const {
    return {data, 1, kShape.key_heads, rows_, columns, 0, rows_ * columns, columns, 1};
  }
  int64_t rows_;
};

int64_t filled(KvCache& cache, const std::optional<Rotation>& rotated_keys) {
  Content rows(kRows);
  std::mt19937 engine(1);
  for (std::vector<float>* data : {&rows.k, &rows.v})
    for (float& x : *data) x = std::normal_distribution<float>()(engine);
  const int64_t sequence = cache.add(-77, rotated_keys);
  cache.append(sequence, rows.keys<const float>(), rows.values<const float>());
  return sequence;
}

std::string a_file(bool rotated = true) {
  KvCache cache(kShape);
  const Rotation rope = rotation(rotary({.dim = 6}));
  return cache_file(cache, filled(cache, rotated ? std::optional(rope) : std::nullopt));
}

TEST(SavedCache, ReadsWhatItWrites) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16})
    for (const bool rotated : {true, false}) {
      Rotation rope = rotation(rotary({.dim = 6}));
      rope.gain = 1.25;
      KvCacheShape cache_shape = kShape;
      cache_shape.dtype = dtype;
      KvCache cache(cache_shape);
      const int64_t sequence = filled(cache, rotated ? std::optional(rope) : std::nullopt);
      const std::string file = cache_file(cache, sequence);
      KvCacheShape shape = cache_file_shape(file);
      EXPECT_EQ(shape.page_rows, 256);
      EXPECT_EQ(shape.dtype, dtype);
      KvCache other(shape);
      const int64_t copy = add_cache_file(file, other);
      EXPECT_EQ(other.rows(copy), kRows);
      EXPECT_EQ(other.first_position(copy), -77);
      EXPECT_EQ(other.rotated_keys(copy).has_value(), rotated);
      Content before(kRows), after(kRows);
      cache.read(sequence, 0, before.keys(), before.values());
      other.read(copy, 0, after.keys(), after.values());
      EXPECT_EQ(before.k, after.k);
      EXPECT_EQ(before.v, after.v);
      EXPECT_EQ(cache_file(other, copy), file);  // every bit, also of the rotation
    }
}

TEST(SavedCache, RefusesEveryTruncation) {
  const std::string file = a_file();
  for (size_t size = 0; size < file.size(); ++size) {
    KvCache cache(kShape);
    EXPECT_THROW(add_cache_file(std::string_view(file).substr(0, size), cache), Error) << size;
    EXPECT_EQ(cache.pages_in_use(), 0);
  }
}

TEST(SavedCache, RefusesEveryFlippedBit) {
  const std::string file = a_file();
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    KvCache cache(kShape);
    EXPECT_THROW(add_cache_file(flipped, cache), Error) << bit;
  }
}

// A file with one field changed and its checksums updated.
template <class T>
std::string with(size_t offset, T value) {
  std::string file = a_file();
  std::memcpy(file.data() + offset, &value, sizeof value);
  const auto seal = [&](size_t first, size_t last) {
    const uint32_t crc = crc32(0, std::string_view(file).substr(first, last - first));
    std::memcpy(file.data() + last, &crc, sizeof crc);
  };
  seal(0, 64);
  seal(72, file.size() - 4);
  return file;
}

TEST(SavedCache, NamesTheFieldAndItsByte) {
  const auto refused = [](const std::string& file, const char* sequence) {
    KvCache cache(kShape);
    EXPECT_THAT([&] { add_cache_file(file, cache); }, ThrowsMessage<Error>(HasSubstr(sequence)));
  };
  refused(with(0, 'x'), "saved cache: magic at byte 0: expected SXTKVC01");
  refused(with(8, uint32_t{7}), "format at byte 8: expected 1 to 6, but got 7");
  refused(with(8, uint32_t{4}), "pairs at byte 12: expected 2^32 - 1, as int8 keys are unrotated");
  refused(with(12, uint32_t{5}), "pairs at byte 12: expected at most half of the key columns");
  refused(with(12, uint32_t{2}), "body at byte 72: expected");
  refused(with(16, uint64_t{0}), "key heads at byte 16: expected 1 to 1048576, but got 0");
  refused(with(24, ~uint64_t{0}), "key columns at byte 24: expected 1 to 1048576");
  refused(with(40, uint64_t{1} << 40), "body at byte 72: expected");
  refused(with(40, (uint64_t{1} << 40) + 1), "rows at byte 40: expected 0 to");
  refused(with(40, uint64_t{20}), "body at byte 72: expected");
  refused(with(48, int64_t{1} << 53),
          "first position at byte 48: expected -4503599627370496 to 4503599627370496, but got");
  refused(with(56, 0.0), "gain at byte 56: expected a finite number above 0");
  refused(with(56, std::nan("")), "gain at byte 56");
  refused(with(68, uint32_t{1}), "header padding at byte 68: expected 0, but got 1");
  refused(with(72, uint32_t{8}), "pair at byte 72: expected a column below 8");
  refused(with(76, uint32_t{0}), "pair at byte 76: expected a column below 8 that no other");
  refused(a_file() + "x", "body at byte 72: expected");
  KvCache other({.key_heads = 1, .key_columns = 8, .value_columns = 3});
  EXPECT_THAT([&] { add_cache_file(a_file(), other); },
              ThrowsMessage<Error>(HasSubstr("the heads, columns and format of the cache")));
}

TEST(SavedCache, AFileIsThereWholeOrAsItWas) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "deep" / "prompt";
  KvCache cache(kShape);
  const int64_t sequence = filled(cache, std::nullopt);
  save_cache(cache, sequence, path);
  EXPECT_EQ(cache_file(cache, load_cache(path, cache)), cache_file(cache, sequence));
  cache.truncate(sequence, 3);
  save_cache(cache, sequence, path);
  EXPECT_EQ(cache.rows(load_cache(path, cache)), 3);
  const auto fails = [&](auto run, const char* says) {
    EXPECT_THAT(run, ThrowsMessage<Error>(HasSubstr(says)));
  };
  fails([&] { save_cache(cache, sequence, path / "below"); }, "cannot make its folder");
  fails([&] { save_cache(cache, 99, path); }, "sequence: expected one that was added");
  EXPECT_EQ(cache.rows(load_cache(path, cache)), 3);
  fails([&] { load_cache(folder.path() / "nowhere", cache); }, "nowhere: cannot open it");
  fails([&] { load_cache(folder.path(), cache); }, "expected a file, but got a folder");
  fails(
      [&] {
        write_file(path, "GGUF and more");
        load_cache(path, cache);
      },
      "saved cache: magic at byte 0: expected SXTKVC01");
  int64_t files = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(folder.path() / "deep"))
    ++files;
  EXPECT_EQ(files, 1);
}

TEST(SavedCache, AHugeShapeAllocatesNothing) {
  std::string file = with(16, uint64_t{1} << 20);
  std::memcpy(file.data() + 24, "\0\0\x10\0\0\0\0\0", 8);
  std::memcpy(file.data() + 40, "\0\0\0\0\0\1\0\0", 8);
  const uint32_t crc = crc32(0, std::string_view(file).substr(0, 64));
  std::memcpy(file.data() + 64, &crc, sizeof crc);
  KvCache cache(kShape);
  EXPECT_THAT([&] { add_cache_file(file, cache); },
              ThrowsMessage<Error>(HasSubstr("body at byte 72")));
}

}  // namespace
}  // namespace sextant
