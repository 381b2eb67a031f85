// A cache in a 16-bit format equals a float32 cache of the rounded values.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "sextant/cache/kv_cache.h"
#include "tests/attention/tensor.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

class Narrow : public ::testing::TestWithParam<DType> {
 protected:
  KvCacheShape shape() const {
    KvCacheShape shape = kShape;
    shape.dtype = GetParam();
    return shape;
  }
  Tensor<float> rounded(Tensor<float> x) const {
    for (float& element : x.data)
      element = GetParam() == DType::kBfloat16 ? to_float(narrowed<Bfloat16>(element))
                                               : to_float(narrowed<Float16>(element));
    return x;
  }
  Rows rounded(Rows rows) const {
    rows.k = rounded(std::move(rows.k));
    rows.v = rounded(std::move(rows.v));
    return rows;
  }
};
INSTANTIATE_TEST_SUITE_P(KvCache, Narrow, ::testing::Values(DType::kBfloat16, DType::kFloat16),
                         [](const auto& info) {
                           return info.param == DType::kBfloat16 ? "Bfloat16" : "Float16";
                         });

TEST_P(Narrow, IsAsTheRoundedNumbersInFloat32) {
  const int64_t length = 75;
  const Model1 m(length, 21);
  const Rotation rotation = rope(4);
  KvCache narrow(shape()), wide(kShape);
  for (KvCache* cache : {&narrow, &wide}) {
    const int64_t sequence = filled(*cache, cache == &wide ? rounded(m.rows) : m.rows, 5);
    const int64_t fork = cache->fork(sequence, 40);  // shares a page and then changes it
    cache->append(fork, part(rounded(m.rows).k, 60, 70), part(rounded(m.rows).v, 60, 70));
    cache->drop(sequence, 3, 20);
  }
  EXPECT_EQ(narrow.key_pages().element_size(), 2);
  for (const int64_t sequence : {0, 1}) {
    EXPECT_EQ(read(narrow, sequence).k.data, read(wide, sequence).k.data);
    EXPECT_EQ(read(narrow, sequence).v.data, read(wide, sequence).v.data);
    for (const int64_t queries : {1, 7, 30}) {
      const std::vector<CachedBatch::Entry> entries = {{sequence, &rotation}};
      const Tensor<float> q = copied(part(m.q, 0, queries));
      EXPECT_EQ(attend_cached(narrow, entries, q).data, attend_cached(wide, entries, q).data);
    }
  }
}

// Rotated keys are rounded twice: when they are appended, and after their rotation.
TEST_P(Narrow, HoldsRotatedKeysRounded) {
  const Rows rows = rounded(Rows(50, 3));
  const Rotation rotation = rope();
  KvCache narrow(shape()), wide(kShape);
  const int64_t sequence = filled(narrow, rows, 9, rotation);
  ASSERT_EQ(filled(wide, rows, 9, rotation), sequence);
  const Tensor<float> got = read(narrow, sequence).k, rotated = read(wide, sequence).k;
  const double half_ulp = GetParam() == DType::kBfloat16 ? 0x1p-8 : 0x1p-11;
  for (size_t n = 0; n < got.data.size(); ++n)
    EXPECT_NEAR(got.data[n], rotated.data[n], half_ulp * std::abs(rotated.data[n]) + 0x1p-20);
}

}  // namespace
}  // namespace sextant::testing
