// A cache returns the rows that were appended, after any other operations, and attention over it
// equals attention over the whole sequence.
#include "sextant/cache/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "tests/attention/tensor.h"

namespace sextant {
namespace {

using oracle::Tensor;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kHeads = 2, kColumns = 8, kValueColumns = 5;
constexpr KvCacheShape kShape = {
    .key_heads = kHeads, .key_columns = kColumns, .value_columns = kValueColumns, .page_rows = 16};

Tensor<float> random(int64_t batch, int64_t heads, int64_t rows, int64_t columns, uint64_t seed) {
  Tensor<float> x(batch, heads, rows, columns);
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal;
  for (float& element : x.data) element = normal(engine);
  return x;
}

// Rows [first, last) of a tensor.
View<const float> part(const Tensor<float>& x, int64_t first, int64_t last) {
  View<const float> view = x.view();
  view.data = view.at(0, 0, first);
  view.rows = last - first;
  return view;
}

struct Rows {
  Tensor<float> k, v;

  Rows(int64_t rows, uint64_t seed)
      : k(random(1, kHeads, rows, kColumns, seed)),
        v(random(1, kHeads, rows, kValueColumns, seed + 1000)) {}
};

Rows read(const KvCache& cache, int64_t sequence) {
  Rows rows(cache.rows(sequence), 0);
  cache.read(sequence, 0, rows.k.view(), rows.v.view());
  return rows;
}

int64_t filled(KvCache& cache, const Rows& rows, int64_t first_position = 0,
               const std::optional<Rotation>& rotated_by = {}) {
  const int64_t sequence = cache.add(first_position, rotated_by);
  cache.append(sequence, rows.k.view(), rows.v.view());
  return sequence;
}

double largest_difference(const Tensor<float>& a, const Tensor<float>& b) {
  EXPECT_EQ(a.data.size(), b.data.size());
  double most = 0;
  for (size_t n = 0; n < a.data.size(); ++n)
    most = std::max(most, std::abs(static_cast<double>(a.data[n]) - b.data[n]));
  return most;
}

Rotation rope(double stretch = 1) {
  Spectrum spectrum = rotary({.dim = kColumns});
  for (Spectrum::Pair& pair : spectrum.pairs) pair.speed = pair.speed / Real(stretch);
  spectrum.gain = 1 + 0.1 * std::log(stretch);
  return rotation(spectrum);
}

// --- contents ---

// The expected contents: for each sequence, the rows of `all` that it holds copies of.
using Model = std::map<int64_t, std::vector<int64_t>>;

void expect_holds(const KvCache& cache, const Model& model, const Rows& all) {
  for (const auto& [sequence, rows] : model) {
    ASSERT_EQ(cache.rows(sequence), static_cast<int64_t>(rows.size()));
    const Rows got = read(cache, sequence);
    for (int64_t h = 0; h < kHeads; ++h)
      for (size_t n = 0; n < rows.size(); ++n) {
        const auto row = static_cast<int64_t>(n);
        for (int64_t c = 0; c < kColumns; ++c)
          ASSERT_EQ(got.k(0, h, row, c), all.k(0, h, rows[n], c)) << sequence << " row " << row;
        for (int64_t c = 0; c < kValueColumns; ++c)
          ASSERT_EQ(got.v(0, h, row, c), all.v(0, h, rows[n], c)) << sequence << " row " << row;
      }
  }
}

TEST(KvCache, HoldsWhatWasPutIntoItAfterAnyOperations) {
  const Rows all(4000, 1);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 engine(seed);
    const auto up_to = [&](int64_t n) {
      return static_cast<int64_t>(engine() % static_cast<uint64_t>(n + 1));
    };
    KvCache cache(kShape);
    Model model = {{cache.add(), {}}};
    for (int64_t step = 0, used = 0; step < 100; ++step) {
      auto any = std::next(model.begin(), up_to(static_cast<int64_t>(model.size()) - 1));
      auto& [sequence, rows] = *any;
      const auto count = static_cast<int64_t>(rows.size());
      const int64_t operation = up_to(9);
      if (operation < 5) {
        const int64_t more = up_to(40);
        cache.append(sequence, part(all.k, used, used + more), part(all.v, used, used + more));
        for (int64_t n = 0; n < more; ++n) rows.push_back(used++);
      } else if (operation == 5) {
        const int64_t kept = up_to(count);
        model[cache.fork(sequence, kept)].assign(rows.begin(), rows.begin() + kept);
      } else if (operation == 6) {
        rows.resize(static_cast<size_t>(up_to(count)));
        cache.truncate(sequence, static_cast<int64_t>(rows.size()));
      } else if (operation < 9) {
        const int64_t first = up_to(count), gone = up_to(count - first);
        cache.drop(sequence, first, gone);
        rows.erase(rows.begin() + first, rows.begin() + first + gone);
      } else if (model.size() > 1) {
        cache.remove(sequence);
        model.erase(any);
      }
      expect_holds(cache, model, all);
      if (HasFatalFailure()) return;
    }
    for (const auto& [sequence, rows] : model) cache.remove(sequence);
    EXPECT_EQ(cache.pages_in_use(), 0);
  }
}

TEST(KvCache, AForkCostsNothingUntilItDiffers) {
  KvCache cache(kShape);
  const Rows rows(40, 1), more(1, 2);
  const int64_t sequence = filled(cache, rows);
  EXPECT_EQ(cache.pages_in_use(), 3);
  const int64_t fork = cache.fork(sequence, 40);
  EXPECT_EQ(cache.pages_in_use(), 3);
  cache.append(fork, more.k.view(), more.v.view());
  EXPECT_EQ(cache.pages_in_use(), 4);  // 3 and the fork's own last page
  EXPECT_EQ(largest_difference(read(cache, sequence).k, rows.k), 0);
  cache.remove(sequence);
  EXPECT_EQ(cache.pages_in_use(), 3);
}

// --- attention ---

struct Model1 {
  Rows rows;
  Tensor<float> q;

  Model1(int64_t length, uint64_t seed)
      : rows(length, seed), q(random(1, 2 * kHeads, length, kColumns, seed + 2000)) {}
};

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
      .q = q.view(),
      .k = k.view(),
      .v = v.view(),
      .scale = 0.3,
      .frames = {{.queries = n,
                  .query_position = first_position,
                  .keys = n,
                  .key_position = first_position}},
      .sweeps = {{.query = turn, .key = turn, .key_ranges = key_ranges.data()}},
  };
  oracle::Result<double> result(score);
  attend<double>(score, {result.out.view(), result.lse.view()}, reference_backend(),
                 serial_executor());
  return result.out.as<float>();
}

// Attention of the latest queries of a batch of cached sequences, on the cpu backend.
Tensor<float> attend_cached(const KvCache& cache, const std::vector<CachedBatch::Entry>& entries,
                            const Tensor<float>& q) {
  const CachedBatch batch(cache, entries, q.rows);
  Score<float> score = {.q = q.view(), .scale = 0.3};
  batch.place(score);
  oracle::Result<float> result;
  result.out = Tensor<float>(q.batch, q.heads, q.rows, kValueColumns);
  result.lse = Tensor<float>(q.batch, q.heads, q.rows, 1);
  attend<float>(score, {result.out.view(), result.lse.view()}, cpu_backend(), serial_executor());
  return result.out;
}

Tensor<float> copied(const View<const float>& x) {
  Tensor<float> to(x.batch, x.heads, x.rows, x.columns);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.rows; ++i)
        for (int64_t c = 0; c < x.columns; ++c) to(b, h, i, c) = x(b, h, i, c);
  return to;
}

class Held : public ::testing::TestWithParam<bool> {
 protected:
  std::optional<Rotation> rotated_by(const Rotation& rotation) const {
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
      const int64_t sequence = cache.add(first_position, rotated_by(rotation));
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

TEST_P(Held, TextsOfOtherStretchesAndLengthsShareOneBatch) {
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
    entries.push_back({filled(cache, m.rows, first, rotated_by(rotations[b])), &rotations[b]});
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

// --- 16-bit formats ---

class Narrow : public ::testing::TestWithParam<Format> {
 protected:
  KvCacheShape shape() const {
    KvCacheShape shape = kShape;
    shape.format = GetParam();
    return shape;
  }
  Tensor<float> rounded(Tensor<float> x) const {
    for (float& element : x.data)
      element = GetParam() == Format::kBfloat16 ? to_float(narrowed<Bfloat16>(element))
                                                : to_float(narrowed<Float16>(element));
    return x;
  }
  Rows rounded(Rows rows) const {
    rows.k = rounded(std::move(rows.k));
    rows.v = rounded(std::move(rows.v));
    return rows;
  }
};
INSTANTIATE_TEST_SUITE_P(KvCache, Narrow, ::testing::Values(Format::kBfloat16, Format::kFloat16),
                         [](const auto& info) {
                           return info.param == Format::kBfloat16 ? "Bfloat16" : "Float16";
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

// Keys that are held rotated are rounded twice: when they are appended, and after their rotation.
TEST_P(Narrow, HoldsTurnedKeysRounded) {
  const Rows rows = rounded(Rows(50, 3));
  const Rotation rotation = rope();
  KvCache narrow(shape()), wide(kShape);
  const int64_t sequence = filled(narrow, rows, 9, rotation);
  ASSERT_EQ(filled(wide, rows, 9, rotation), sequence);
  const Tensor<float> got = read(narrow, sequence).k, rotated = read(wide, sequence).k;
  const double half_ulp = GetParam() == Format::kBfloat16 ? 0x1p-8 : 0x1p-11;
  for (size_t n = 0; n < got.data.size(); ++n)
    EXPECT_NEAR(got.data[n], rotated.data[n], half_ulp * std::abs(rotated.data[n]) + 0x1p-20);
}

// --- positions change ---

constexpr double kOneTurn = 4e-6;  // error of one more float32 rotation of keys of a few units

TEST(KvCache, RerotateMovesATextAsIfItHadBeenThere) {
  const Rows rows(50, 3);
  const Rotation rotation = rope(), stretched = rope(8);
  KvCache cache(kShape);
  const int64_t sequence = filled(cache, rows, 0, rotation);
  const int64_t shared = cache.fork(sequence, 50);
  const Rows before = read(cache, shared);
  cache.rerotate(sequence, int64_t{1} << 45);
  EXPECT_EQ(cache.first_position(sequence), int64_t{1} << 45);
  const int64_t there = filled(cache, rows, int64_t{1} << 45, rotation);
  EXPECT_LE(largest_difference(read(cache, sequence).k, read(cache, there).k), kOneTurn);
  cache.rerotate(sequence, stretched);
  const int64_t otherwise = filled(cache, rows, int64_t{1} << 45, stretched);
  EXPECT_LE(largest_difference(read(cache, sequence).k, read(cache, otherwise).k), 2 * kOneTurn);
  EXPECT_EQ(largest_difference(read(cache, shared).k, before.k), 0);

  const int64_t plain = filled(cache, rows);
  cache.rerotate(plain, 77);
  EXPECT_EQ(cache.first_position(plain), 77);
  EXPECT_EQ(largest_difference(read(cache, plain).k, rows.k), 0);
}

TEST(KvCache, RowsBehindADroppedOneStandWhereTheyMove) {
  const Rows rows(60, 4);
  const Rotation rotation = rope(2);
  KvCache cache(kShape);
  const int64_t sequence = filled(cache, rows, 9, rotation);
  cache.drop(sequence, 4, 21);
  const int64_t expected = cache.add(9, rotation);
  cache.append(expected, part(rows.k, 0, 4), part(rows.v, 0, 4));
  cache.append(expected, part(rows.k, 25, 60), part(rows.v, 25, 60));
  EXPECT_LE(largest_difference(read(cache, sequence).k, read(cache, expected).k), kOneTurn);
  EXPECT_EQ(largest_difference(read(cache, sequence).v, read(cache, expected).v), 0);
}

TEST(KvCache, SaysWhatItDoesNotTake) {
  const auto fails = [](const std::function<void()>& action, const char* sequence) {
    EXPECT_THAT(action, ThrowsMessage<Error>(HasSubstr(sequence)));
  };
  fails([] { KvCache({.key_columns = 8, .page_rows = 100}); },
        "kv cache: page_rows: expected a multiple of 16, but got 100");
  fails([] { KvCache cache({.key_heads = 0, .key_columns = 8}); }, "key_heads: expected 1 to");
  KvCache cache(kShape);
  const Rows rows(20, 5);
  const int64_t sequence = filled(cache, rows);
  fails([&] { cache.rows(99); },
        "sequence: expected one that was added and not removed, but got 99");
  fails([&] { cache.fork(sequence, 21); }, "rows: expected 0 to 20, but got 21");
  fails([&] { cache.truncate(sequence, -1); }, "rows: expected 0 to 20, but got -1");
  fails([&] { cache.drop(sequence, 15, 6); }, "count: expected 0 to 5, but got 6");
  fails([&] { cache.append(sequence, rows.v.view(), rows.v.view()); },
        "k.columns: expected 8, but got 5");
  fails([&] { cache.append(sequence, rows.k.view(), part(rows.v, 0, 3)); }, "v.rows: expected 20");
  fails([&] { cache.append(sequence, rows.k.view(), rows.v.view(), 1); }, "b: expected 0 to 0");
  fails([&] { cache.rerotate(sequence, rope()); }, "held rotated");
  fails([&] { cache.add(0, rotation(with_xpos(rotary({.dim = 8}), 0.4, 512))); }, "without growth");
  fails([&] { cache.add(0, rotation(rotary({.dim = 16}))); }, "rotated_by.pairs: expected 0 to 7");
  const Rotation one = rope(), other = rope(2);
  const int64_t rotated = filled(cache, rows, 0, one);
  const CachedBatch::Entry entry = {rotated, &other};
  fails([&] { CachedBatch batch(cache, {&entry, 1}, 1); }, "by which its keys are held rotated");
  fails(
      [&] {
        CachedBatch batch(cache, {&entry, 1}, 21);
      },
      "queries: expected 0 to 20, but got 21");
}

}  // namespace
}  // namespace sextant
