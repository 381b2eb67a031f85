// Decoding within a window, and of other numbers of queries for each sequence: the bits of
// windowed() over the same rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/layouts.h"
#include "sextant/base/error.h"
#include "sextant/cache/decoding.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/buckets.h"
#include "tests/attention/host_backends.h"
#include "tests/attention/tensor.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

constexpr int64_t kAllHeads = 2 * kHeads;

// The terms of a problem beside its keys.
struct Terms {
  std::string name;
  const Rotation* rotation = nullptr;
  bool rotated_keys = false, bias = false, t5 = false, sink = false;
  double softcap = 0;
};

const std::vector<Rotation>& rotations() {
  static const std::vector<Rotation> all = {rope(), rope(4)};
  return all;
}

std::vector<Terms> all_terms() {
  const Rotation* const rotation = &rotations()[0];
  return {{.name = "none"},
          {.name = "rope, softcap", .rotation = rotation, .softcap = 3},
          {.name = "rotated keys, sink", .rotation = rotation, .rotated_keys = true, .sink = true},
          {.name = "alibi", .bias = true},
          {.name = "t5, sink, softcap", .t5 = true, .sink = true, .softcap = 3}};
}

// The operands of `terms` for the distances of some diagonals.
struct OwnOperands {
  std::vector<float> table, sink;
  std::vector<int32_t> map;
  Operands<float> operands;

  OwnOperands(const Terms& terms, const Diagonals& diagonals) {
    operands = {.scale = 0.3, .softcap = terms.softcap};
    if (terms.sink) {
      sink.assign(kAllHeads, 0.5F);
      operands.sink = sink;
    }
    if (terms.bias) {
      table = by_distance(diagonals, kAllHeads, [](int64_t h, int64_t d) {
        return -0.05 * static_cast<double>((h + 1) * d);
      });
      operands.bias = contiguous(table.data(), {1, kAllHeads, diagonals.count, 1});
    }
    if (terms.t5) {
      const T5Buckets buckets({.bidirectional = false});
      for (int64_t n = 0; n < diagonals.count; ++n)
        map.push_back(static_cast<int32_t>(buckets.bucket(diagonals.distance(n))));
      for (int64_t n = 0; n < kAllHeads * buckets.buckets(); ++n)
        table.push_back(0.1F * static_cast<float>(n % 17));
      operands.bias = contiguous(table.data(), {1, kAllHeads, buckets.buckets(), 1});
    }
  }
  OwnOperands(const OwnOperands&) = delete;

  RowMaps maps() const { return {.bias = map}; }
};

struct Problem {
  std::vector<int64_t> lengths, windows;
  int64_t queries = 1;
  std::vector<int64_t> counts = {};

  int64_t count(size_t b) const { return counts.empty() ? queries : counts[b]; }
};

using Results = oracle::Result<float>;

Results results_of(int64_t batch, int64_t queries) {
  Results results;
  results.out = Tensor<float>(batch, kAllHeads, queries, kValueColumns);
  results.lse = Tensor<float>(batch, kAllHeads, queries, 1);
  std::ranges::fill(results.out.data, 7.0F);
  return results;
}

class Batch {
 public:
  Batch(const Problem& problem, const Terms& terms, const KvCacheShape& shape)
      : problem_(problem), terms_(terms), cache(shape) {
    for (size_t b = 0; b < problem.lengths.size(); ++b) {
      const auto first = static_cast<int64_t>(b) * 37;
      const std::optional<Rotation> held =
          terms.rotated_keys ? std::optional(*terms.rotation) : std::nullopt;
      const int64_t sequence = filled(cache, Rows(problem.lengths[b], b + 1), first, held);
      entries.push_back({sequence, terms.rotation, problem.windows[b % problem.windows.size()]});
    }
    q = random(std::ssize(entries), kAllHeads, problem.queries, kColumns, 99);
  }

  // One call of windowed() or causal() for each sequence, over copies of its rows.
  Results expected(const Backend& backend) const {
    Results all = results_of(q.batch, q.rows);
    std::ranges::fill(all.out.data, 0.0F);
    std::ranges::fill(all.lse.data, -std::numeric_limits<float>::infinity());
    for (size_t b = 0; b < entries.size(); ++b) {
      const int64_t count = problem_.count(b), entry = static_cast<int64_t>(b);
      if (count == 0) continue;
      const Rows rows = read(cache, entries[b].sequence);
      const SequenceRows sizes = {.queries = count,
                                  .keys = problem_.lengths[b],
                                  .first_key = cache.first_position(entries[b].sequence)};
      std::optional<Rotation> rotation;
      if (entries[b].rotation) rotation = *entries[b].rotation;
      const OwnedPlan layout = entries[b].window > 0 ? windowed(sizes, entries[b].window, rotation)
                                                     : causal(sizes, rotation);
      const OwnOperands held(terms_, layout.diagonals());
      Score<float> score = {held.operands, layout.plan()};
      if (terms_.rotated_keys) score.sweeps[0].key = {};
      score.row_at = held.maps();
      View<const float> own = q.view();
      own.data = own.at(entry, 0, 0);
      own.batch = 1, own.rows = count;
      score.q = own;
      score.k = rows.k.view(), score.v = rows.v.view();
      Results one = results_of(1, count);
      attend<float>(score, {one.out.view(), one.lse.view()}, backend);
      for (int64_t h = 0; h < kAllHeads; ++h)
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t c = 0; c < kValueColumns; ++c) all.out(entry, h, i, c) = one.out(0, h, i, c);
          all.lse(entry, h, i, 0) = one.lse(0, h, i, 0);
        }
    }
    return all;
  }

  Results by_batch(const Backend& backend) const {
    const CachedBatch batch(cache, entries, problem_.queries, problem_.counts);
    const OwnOperands held(terms_, batch.plan().diagonals);
    Score<float> score = {held.operands};
    score.q = q.view();
    batch.place(score);
    score.row_at = held.maps();
    Results results = results_of(q.batch, q.rows);
    attend<float>(score, {results.out.view(), results.lse.view()}, backend);
    return results;
  }

  Results by_decoding(const Backend& backend, const Context& context = {}) const {
    const int64_t most = std::ranges::max(problem_.lengths) + 50;
    const DecodingShape shape = {
        .heads = kAllHeads, .queries = problem_.queries, .most_rows = most};
    const OwnOperands held(terms_, Decoding(cache, entries, shape).diagonals());
    Decoding decoding(cache, entries, shape, held.maps(), backend, context);
    Results results = results_of(q.batch, q.rows);
    for (int n = 0; n < 2; ++n) {  // the first step has all diagonals
      decoding.step(cache, problem_.counts);
      Operands<float> operands = held.operands;
      operands.q = q.view();
      decoding.attend(cache, operands, {results.out.view(), results.lse.view()});
    }
    return results;
  }

 private:
  const Problem& problem_;
  const Terms& terms_;

 public:
  KvCache cache;
  std::vector<CachedBatch::Entry> entries;
  Tensor<float> q;
};

void expect_same(const Results& results, const Results& expected) {
  EXPECT_EQ(results.out.data, expected.out.data);
  EXPECT_EQ(results.lse.data, expected.lse.data);
}

std::vector<Problem> problems() {
  return {
      {{1}, {1}},
      {{kAllHeads, kAllHeads, kAllHeads, kAllHeads}, {kAllHeads}, kAllHeads},  // all sizes equal
      {{300, 1, 33, 256}, {1}},
      {{300, 1, 33, 256}, {100}},
      {{300, 300}, {300}, 3},       // as many keys as rows
      {{300, 20}, {1000}, 2},       // more
      {{700, 513, 512}, {256}, 2},  // whole units, and one more
      {{700, 513, 512}, {257, 0, 17}, 3},
      {{700, 40, 600}, {0}, 9, {9, 1, 0}},  // no window
      {{700, 40, 600, 5}, {64}, 9, {1, 9, 2, 0}},
      {{700, 40}, {300, 8}, 3, {0, 0}},
      {{600, 600}, {520}, 40, {40, 1}},
  };
}

KvCacheShape cache_shape(DType dtype, bool int8 = false) {
  KvCacheShape shape = kShape;
  shape.dtype = dtype;
  shape.int8 = int8;
  return shape;
}

TEST(WindowedDecoding, HasTheBitsOfWindowed) {
  const auto pool = make_thread_pool(3);
  for (const Problem& problem : problems())
    for (const Terms& terms : all_terms())
      for (const KvCacheShape& shape :
           {cache_shape(DType::kFloat32),
            cache_shape(DType::kBfloat16, /*int8=*/!terms.rotated_keys)})
        for (const Backend* backend : host_backends()) {
          SCOPED_TRACE(terms.name + ", " + std::string(backend->name) + ", rows " +
                       std::to_string(problem.lengths[0]) + ", window " +
                       std::to_string(problem.windows[0]));
          const Batch batch(problem, terms, shape);
          if (!backend->batch_invariant && problem.queries > 1) continue;
          const Results expected = batch.expected(*backend);
          expect_same(batch.by_batch(*backend), expected);
          expect_same(batch.by_decoding(*backend), expected);
          expect_same(batch.by_decoding(*backend, Context(*pool)), expected);
        }
}

TEST(WindowedDecoding, SequencesHaveRotationsOfTheirOwn) {
  const Problem problem = {{700, 600, 40}, {100, 0, 30}, 2};
  const Terms terms = {.name = "rope", .rotation = &rotations()[0]};
  Batch batch(problem, terms, kShape);
  batch.entries[1].rotation = &rotations()[1];
  const Results expected = batch.expected(cpu_backend());
  expect_same(batch.by_batch(cpu_backend()), expected);
  expect_same(batch.by_decoding(cpu_backend()), expected);
}

// Windows move with the sequences, in a plan that knows the last rows (Decoding) and in one that is
// renewed; sequences also shrink and are moved.
TEST(WindowedDecoding, FollowsSequencesThatChange) {
  const Rotation& rotation = rotations()[0];
  const Rows rows(2200, 3);
  KvCache cache(kShape);
  const auto append = [&](int64_t sequence, int64_t count) {
    const int64_t first = cache.rows(sequence);
    cache.append(sequence, part(rows.k, first, first + count), part(rows.v, first, first + count));
  };
  std::vector<CachedBatch::Entry> entries;
  for (const int64_t length : {1, 300, 150}) {
    entries.push_back({cache.add(), &rotation, 200});
    append(entries.back().sequence, length);
  }
  const Tensor<float> q = random(3, kAllHeads, 1, kColumns, 7);
  Decoding decoding(cache, entries, {.heads = kAllHeads, .most_rows = 2200});
  CachedBatch renewed(cache, entries, 1);
  const Operands<float> operands = {.q = q.view(), .scale = 0.3};
  std::optional<PreparedPlan> plan;
  const auto check = [&] {
    const CachedBatch batch(cache, entries, 1);
    Score<float> score = {operands};
    batch.place(score);
    Results expected = results_of(3, 1), results = results_of(3, 1);
    attend<float>(score, {expected.out.view(), expected.lse.view()}, cpu_backend());
    decoding.step(cache);
    decoding.attend(cache, operands, {results.out.view(), results.lse.view()});
    expect_same(results, expected);
    renewed.renew(cache);
    Operands<float> own = operands;
    renewed.set_keys(own, cache);
    if (plan)
      plan->renew(renewed.plan(), shape_of(own, renewed.plan()));
    else
      plan.emplace(renewed.plan(), shape_of(own, renewed.plan()), cpu_backend());
    attend<float>(own, *plan, {results.out.view(), results.lse.view()});
    expect_same(results, expected);
  };
  for (int n = 0; n < 45; ++n) {
    for (const CachedBatch::Entry& entry : entries) append(entry.sequence, 1 + 40 * (n % 2));
    check();
  }
  cache.truncate(entries[1].sequence, 255);
  check();
  cache.truncate(entries[0].sequence, 1);
  check();
  cache.rerotate(entries[1].sequence, 1000);
  check();
  cache.drop(entries[2].sequence, 3, 600);
  check();
}

TEST(WindowedDecoding, RefusesWhatDoesNotFit) {
  KvCache cache(kShape);
  const int64_t sequence = filled(cache, Rows(5, 1));
  const auto refused = [&](int64_t window, int64_t queries, const std::vector<int64_t>& counts,
                           const char* reason) {
    const CachedBatch::Entry entry = {sequence, nullptr, window};
    EXPECT_THAT(
        [&] {
          CachedBatch(cache, {&entry, 1}, queries, counts);
        },
        ::testing::ThrowsMessage<Error>(::testing::HasSubstr(reason)));
  };
  refused(-1, 1, {}, "batch: sequence 0: window: expected at least 0, but got -1");
  refused(2, 1, {1, 1}, "counts: expected 1, one for each sequence of the batch, but got 2");
  refused(2, 2, {3}, "counts: expected 0 to 2, but got 3");
  refused(2, 2, {-1}, "counts: expected 0 to 2, but got -1");
  refused(2, 6, {6}, "queries: expected 0 to 5, but got 6");
}

}  // namespace
}  // namespace sextant::testing
