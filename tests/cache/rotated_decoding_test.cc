// Keys that are rotated while they are decoded give the bits of a prefill, which packs them first.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/layouts.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/spectrum.h"
#include "tests/attention/tensor.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

constexpr int64_t kWide = 48, kLength = 150;

struct Case {
  std::string name;
  RotaryOptions options;
};

// Pairs that fill blocks of eight columns, and some that do not.
std::vector<Case> cases() {
  return {{"half split", {.dim = 48}},
          {"half split of 40", {.dim = 40}},
          {"half split of the first columns", {.dim = 32}},
          {"half split of the last columns", {.dim = 32, .first_column = 16}},
          {"half split from column 4", {.dim = 32, .first_column = 4}},
          {"interleaved", {.dim = 48, .pairing = Pairing::kInterleaved}},
          {"interleaved from column 8",
           {.dim = 24, .pairing = Pairing::kInterleaved, .first_column = 8}},
          {"interleaved, not whole blocks", {.dim = 12, .pairing = Pairing::kInterleaved}}};
}

Tensor<float> rounded(Tensor<float> x, DType dtype) {
  for (float& element : x.data) {
    if (dtype == DType::kBfloat16) element = to_float(narrowed<Bfloat16>(element));
    if (dtype == DType::kFloat16) element = to_float(narrowed<Float16>(element));
  }
  return x;
}

// The result of the last row of a causal prefill.
std::vector<float> prefill(const Tensor<float>& q, const Tensor<float>& k, const Tensor<float>& v,
                           const Rotation& rotation) {
  const OwnedPlan layout = causal({.queries = kLength, .keys = kLength}, rotation);
  const Score<float> score = {{.q = q.view(), .k = k.view(), .v = v.view(), .scale = 0.2},
                              layout.plan()};
  oracle::Result<float> result(score);
  attend<float>(score, {result.out.view(), result.lse.view()}, cpu_backend());
  return copied(part(result.out, kLength - 1, kLength)).data;
}

TEST(RotatedDecoding, HasTheBitsOfPrefill) {
  for (const auto& [name, options] : cases())
    for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16})
      for (const int64_t group : {1, 2, 3, 8, 9}) {
        SCOPED_TRACE(name + ", type " + std::to_string(static_cast<int>(dtype)) + ", group " +
                     std::to_string(group));
        const Rotation rotation = sextant::rotation(rotary(options));
        const Tensor<float> q = random(1, kHeads * group, kLength, kWide, 1);
        const Tensor<float> k = rounded(random(1, kHeads, kLength, kWide, 2), dtype);
        const Tensor<float> v = rounded(random(1, kHeads, kLength, kWide, 3), dtype);
        KvCache cache({.key_heads = kHeads,
                       .key_columns = kWide,
                       .value_columns = kWide,
                       .page_rows = 32,
                       .dtype = dtype});
        const int64_t sequence = cache.add();
        cache.append(sequence, k.view(), v.view());
        const CachedBatch::Entry entries[] = {{sequence, &rotation}};
        const CachedBatch batch(cache, entries, /*queries=*/1);
        const Tensor<float> last = copied(part(q, kLength - 1, kLength));
        Score<float> score = {{.q = last.view(), .scale = 0.2}};
        batch.place(score);
        Tensor<float> out(1, kHeads * group, 1, kWide), lse(1, kHeads * group, 1, 1);
        attend<float>(score, {out.view(), lse.view()}, cpu_backend());
        EXPECT_EQ(out.data, prefill(q, k, v, rotation));
      }
}

}  // namespace
}  // namespace sextant::testing
