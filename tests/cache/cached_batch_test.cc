// Attention over a cache equals attention over the whole sequence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/cache/kv_cache.h"
#include "tests/attention/tensor.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

// Attention of the whole sequence in float64, by the reference.
Tensor<float> whole(const Model1& m, const Rotation* rotation, int64_t first_position) {
  const int64_t n = m.q.rows;
  const Tensor<double> q = m.q.as<double>(), k = m.rows.k.as<double>(), v = m.rows.v.as<double>();
  std::vector<KeyRange> key_ranges;
  std::vector<int64_t> rotary_positions;
  for (int64_t i = 0; i < n; ++i) {
    key_ranges.push_back({0, i + 1});
    rotary_positions.push_back(first_position + i);
  }
  const SideRotation turn = {.rotation = rotation, .rotary_positions = rotary_positions.data()};
  const Score<double> score = {
      {.q = q.view(), .k = k.view(), .v = v.view(), .scale = 0.3},
      {.frames = {{.queries = n,
                   .query_position = first_position,
                   .keys = n,
                   .key_position = first_position}},
       .sweeps = {{.query = turn, .key = turn, .key_ranges = key_ranges.data()}}},
  };
  oracle::Result<double> result(score);
  attend<double>(score, {result.out.view(), result.lse.view()}, reference_backend(),
                 serial_executor());
  return result.out.as<float>();
}

class Held : public ::testing::TestWithParam<bool> {
 protected:
  std::optional<Rotation> rotated_keys(const Rotation& rotation) const {
    return GetParam() ? std::optional(rotation) : std::nullopt;
  }
};
INSTANTIATE_TEST_SUITE_P(KvCache, Held, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Turned" : "Plain"; });

TEST_P(Held, EverySplitOfATextGivesTheSame) {
  const int64_t length = 150;
  const Model1 m(length, 7);
  const Rotation rotation = rope(4);
  for (const int64_t first_position : {int64_t{0}, int64_t{1} << 40}) {
    const Tensor<float> expected = whole(m, &rotation, first_position);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      std::mt19937_64 engine(seed);
      KvCache cache({.key_heads = kHeads,
                     .key_columns = kColumns,
                     .value_columns = kValueColumns,
                     .page_rows = seed % 2 == 0 ? 16 : 256});
      const int64_t sequence = cache.add(first_position, rotated_keys(rotation));
      const int64_t most = seed == 0 ? 1 : 60;  // single steps, or prefill and chunks
      for (int64_t first = 0, last; first < length; first = last) {
        last = std::min(length, first + 1 + static_cast<int64_t>(engine() % most));
        cache.append(sequence, part(m.rows.k, first, last), part(m.rows.v, first, last));
        const Tensor<float> out =
            attend_cached(cache, {{sequence, &rotation}}, copied(part(m.q, first, last)));
        EXPECT_LE(largest_difference(out, copied(part(expected, first, last))), 1e-5);
      }
    }
  }
}

TEST_P(Held, SequencesOfOtherStretchesAndLengthsShareOneBatch) {
  const std::vector<Rotation> rotations = {rope(), rope(4), rope(4), rope(16)};
  const std::vector<int64_t> lengths = {70, 5, 200, 33};
  const int64_t queries = 3;
  KvCache cache(kShape);
  std::vector<CachedBatch::Entry> entries;
  std::vector<Tensor<float>> expected;
  Tensor<float> q(4, 2 * kHeads, queries, kColumns);
  for (size_t b = 0; b < 4; ++b) {
    const Model1 m(lengths[b], 10 + b);
    const auto first = static_cast<int64_t>(100 * b);
    entries.push_back({filled(cache, m.rows, first, rotated_keys(rotations[b])), &rotations[b]});
    expected.push_back(
        copied(part(whole(m, &rotations[b], first), lengths[b] - queries, lengths[b])));
    const Tensor<float> latest = copied(part(m.q, lengths[b] - queries, lengths[b]));
    std::ranges::copy(latest.data, q.data.begin() + static_cast<int64_t>(b * latest.data.size()));
  }
  const Tensor<float> out = attend_cached(cache, entries, q);
  for (size_t b = 0; b < 4; ++b) {
    View<const float> own = out.view();
    own.data = own.at(static_cast<int64_t>(b), 0, 0);
    own.batch = 1;
    EXPECT_LE(largest_difference(copied(own), expected[b]), 1e-5) << b;
  }
}

// The plan of one layer serves the caches of others only if they were filled by the same calls.
TEST(CachedBatch, RefusesKeysOfACacheThatWasFilledOtherwise) {
  const Rows rows(40, 2);
  KvCache first(kShape);
  const Rotation rotation = rope(4);
  const int64_t sequence = filled(first, rows, 0, rotation);
  const CachedBatch::Entry entries[] = {{sequence, &rotation}};
  const CachedBatch batch(first, entries, /*queries=*/1);
  Operands<float> operands;
  batch.set_keys(operands, first);
  KvCache same(kShape);
  filled(same, rows, 0, rope(4));
  batch.set_keys(operands, same);

  const auto refused = [&](const KvCache& cache, const char* reason) {
    EXPECT_THAT([&] { batch.set_keys(operands, cache); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(reason)));
  };
  KvCache longer(kShape), later(kShape), empty(kShape), plain(kShape), stretched(kShape);
  KvCache other_pages({.key_heads = kHeads,
                       .key_columns = kColumns,
                       .value_columns = kValueColumns,
                       .page_rows = 32});
  filled(longer, Rows(41, 2), 0, rope(4));
  filled(later, rows, 3, rope(4));
  filled(plain, rows);
  filled(stretched, rows, 0, rope(16));
  filled(other_pages, rows, 0, rope(4));
  refused(longer, "sequence 0: rows: expected 40, but got 41");
  refused(later, "sequence 0: first_position: expected 0, but got 3");
  refused(empty, "sequence 0: expected it, but it is missing");
  refused(plain, "sequence 0: rotated_keys: expected that of the batch");
  refused(stretched, "sequence 0: rotated_keys: expected that of the batch");
  refused(other_pages, "page_rows: expected 16, but got 32");
}

}  // namespace
}  // namespace sextant::testing
