// The plans of layouts.h show each query the keys that they promise.
#include "sextant/attention/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The distances that a plan's queries see; each query's keys in `seen`, as key rows.
std::set<int64_t> distances_seen(const OwnedPlan& layout, std::vector<std::vector<int64_t>>& seen) {
  std::set<int64_t> distances;
  for (const Frame& f : layout.plan().frames)
    for (int64_t i = f.query_row; i < f.query_row + f.queries; ++i) {
      const KeyRange range = visible_keys(layout.plan().sweeps.front(), f, 0, i);
      seen.emplace_back();
      for (int64_t j = range.first; j < range.last; ++j) {
        seen.back().push_back(j);
        distances.insert(f.distance(i, j));
      }
    }
  return distances;
}

std::vector<std::vector<int64_t>> keys_of_queries(const OwnedPlan& layout) {
  std::vector<std::vector<int64_t>> seen;
  distances_seen(layout, seen);
  return seen;
}

TEST(Layouts, QueriesAreTheLastRows) {
  EXPECT_THAT(keys_of_queries(causal({.queries = 2, .keys = 3})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1, 2)));
  EXPECT_THAT(keys_of_queries(causal({.queries = 2, .keys = 3, .first_key = 10})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1, 2)));
}

TEST(Layouts, AFirstQueryStandsWhereItIsSaid) {
  EXPECT_THAT(keys_of_queries(causal({.queries = 3, .keys = 2, .first_query = -1})),
              ElementsAre(ElementsAre(), ElementsAre(0), ElementsAre(0, 1)));
  EXPECT_THAT(keys_of_queries(causal({.queries = 1, .keys = 3, .first_query = 100})),
              ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Layouts, AWindowCountsTheQuerysOwnKey) {
  EXPECT_THAT(keys_of_queries(windowed({.queries = 3, .keys = 4}, 2)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(1, 2), ElementsAre(2, 3)));
}

TEST(Layouts, BidirectionalQueriesSeeAllKeys) {
  EXPECT_THAT(keys_of_queries(bidirectional({.queries = 2, .keys = 3})),
              Each(ElementsAre(0, 1, 2)));
}

TEST(Layouts, PackedQueriesSeeTheirOwnSequence) {
  const std::vector<int64_t> lengths = {2, 0, 3};
  EXPECT_THAT(keys_of_queries(packed(lengths, {}, 2)),
              ElementsAre(ElementsAre(0), ElementsAre(0, 1), ElementsAre(2), ElementsAre(2, 3),
                          ElementsAre(3, 4)));
}

TEST(Layouts, AWindowMayReachToBothSides) {
  const Frame frame = {.queries = 4, .keys = 4};
  EXPECT_THAT(keys_of_queries(within({frame}, {.left = 1, .right = 2})),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 1, 2, 3), ElementsAre(1, 2, 3),
                          ElementsAre(2, 3)));
  EXPECT_THAT(keys_of_queries(within({frame}, {.left = 0, .right = 0})),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
}

// A padded batch: entry 1 has fewer rows.
TEST(Layouts, FramesMayBelongToBatchEntries) {
  const OwnedPlan layout =
      within({{.batch = 0, .queries = 3, .keys = 3}, {.batch = 1, .queries = 1, .keys = 2}}, {});
  const Sweep& sweep = layout.plan().sweeps.front();
  ASSERT_EQ(sweep.batch_stride, 3);
  EXPECT_EQ(visible_keys(sweep, layout.plan().frames[0], 0, 2), (KeyRange{0, 3}));
  EXPECT_EQ(visible_keys(sweep, layout.plan().frames[1], 1, 0), (KeyRange{0, 2}));
  EXPECT_EQ(layout.diagonals().farthest, 2);
  EXPECT_EQ(layout.diagonals().count, 5);
}

TEST(Layouts, DiagonalsAreTheDistancesSeen) {
  const std::vector<int64_t> lengths = {2, 5, 1};
  std::vector<OwnedPlan> layouts;
  layouts.push_back(causal({.queries = 4, .keys = 9}));
  layouts.push_back(causal({.queries = 4, .keys = 9, .first_key = -3}));
  layouts.push_back(windowed({.queries = 4, .keys = 9}, 3));
  layouts.push_back(windowed({.queries = 4, .keys = 9}, 100));
  layouts.push_back(bidirectional({.queries = 4, .keys = 9}));
  layouts.push_back(packed(lengths));
  layouts.push_back(packed(lengths, {}, 3));
  layouts.push_back(within({{.queries = 9, .keys = 9}}, {.left = 4, .right = 2}));
  for (const OwnedPlan& layout : layouts) {
    std::vector<std::vector<int64_t>> seen;
    const std::set<int64_t> distances = distances_seen(layout, seen);
    const Diagonals& d = layout.diagonals();
    EXPECT_EQ(d.farthest, *distances.rbegin());
    EXPECT_EQ(d.distance(d.count - 1), *distances.begin());
  }
}

TEST(Layouts, DiagonalsNeedNoPlan) {
  const auto expect_same = [](const Diagonals& got, const OwnedPlan& layout) {
    std::vector<std::vector<int64_t>> seen;
    const std::set<int64_t> distances = distances_seen(layout, seen);
    EXPECT_EQ(got.count, layout.diagonals().count);
    EXPECT_EQ(got.count == 0, distances.empty());
    if (distances.empty()) return;
    EXPECT_EQ(got.farthest, layout.diagonals().farthest);
    EXPECT_EQ(got.farthest, *distances.rbegin());
  };
  for (int64_t queries = 0; queries < 5; ++queries)
    for (int64_t keys = 0; keys < 5; ++keys)
      for (int64_t first = -6; first < 12; ++first) {
        const SequenceRows rows = {
            .queries = queries, .keys = keys, .first_key = 2, .first_query = first};
        expect_same(causal_diagonals(rows), causal(rows));
        expect_same(bidirectional_diagonals(rows), bidirectional(rows));
        for (int64_t window = 1; window < 7; ++window)
          expect_same(causal_diagonals(rows, window), windowed(rows, window));
      }
  const std::vector<int64_t> lengths = {2, 0, 5, 1};
  for (int64_t window = 0; window < 7; ++window)
    expect_same(packed_diagonals(lengths, window), packed(lengths, {}, window));
  constexpr int64_t kMany = int64_t{1} << 40;  // the plan would need 16 TiB
  EXPECT_EQ(causal_diagonals({.queries = kMany, .keys = kMany}).count, kMany);
}

TEST(Layouts, ALayoutWithoutRowsHasNoDiagonals) {
  EXPECT_EQ(causal({.queries = 0, .keys = 4}).diagonals().count, 0);
  EXPECT_EQ(bidirectional({.queries = 0, .keys = 4}).diagonals().count, 0);
  EXPECT_EQ(packed({}).diagonals().count, 0);
}

TEST(Layouts, ByDistanceFillsHeadsAndDiagonals) {
  const auto table = by_distance({.farthest = 1, .count = 3}, 2, [](int64_t head, int64_t d) {
    return static_cast<double>(10 * head + d);
  });
  EXPECT_THAT(table, ElementsAre(1, 0, -1, 11, 10, 9));
}

constexpr Shape kShape = {.batch = 2, .heads = 3, .rows = 20, .columns = 8};

struct Result {
  std::vector<float> out = std::vector<float>(960), lse = std::vector<float>(120);
};

Result attended(const OwnedPlan& layout) {
  std::vector<float> x(960);
  for (size_t n = 0; n < x.size(); ++n) x[n] = std::sin(0.7F * static_cast<float>(n));
  const View<float> qkv = contiguous(x, kShape);
  const auto bias = by_distance(layout.diagonals(), 3, [](int64_t head, int64_t d) {
    return -0.1 * static_cast<double>((head + 1) * d);
  });
  Score<float> score = {{.q = qkv, .k = qkv, .v = qkv, .scale = 0.3}, layout.plan()};
  score.bias = contiguous(bias, {.heads = 3, .rows = layout.diagonals().count});
  Result result;
  attend<float>(score,
                {contiguous(result.out, kShape),
                 contiguous(result.lse, {.batch = 2, .heads = 3, .rows = 20})},
                reference_backend());
  return result;
}

TEST(Layouts, PackingOneSequenceChangesNothing) {
  const Rotation rope = rotation(rotary({.dim = 8}));
  const std::vector<int64_t> lengths = {20};
  EXPECT_EQ(attended(packed(lengths, rope)).out, attended(causal({20, 20}, rope)).out);
  EXPECT_EQ(attended(packed(lengths, rope, 4)).out, attended(windowed({20, 20}, 4, rope)).out);
}

TEST(Layouts, AShiftOfAllPositionsChangesNothing) {
  const Rotation rope = rotation(rotary({.dim = 8}));
  const Result here = attended(causal({20, 20}, rope));
  const Result there = attended(causal({.queries = 20, .keys = 20, .first_key = 1 << 20}, rope));
  for (size_t n = 0; n < here.out.size(); ++n) EXPECT_NEAR(here.out[n], there.out[n], 1e-6);
}

TEST(Layouts, TheRotationIsApplied) {
  const Rotation rope = rotation(rotary({.dim = 8}));
  EXPECT_NE(attended(causal({20, 20}, rope)).out, attended(causal({20, 20})).out);
}

TEST(Layouts, APlanMayBeMoved) {
  OwnedPlan layout = causal({20, 20}, rotation(rotary({.dim = 8})));
  const Result before = attended(layout);
  const OwnedPlan moved = std::move(layout);
  EXPECT_EQ(attended(moved).out, before.out);
}

TEST(Layouts, ErrorsNameTheField) {
  const auto refused = [](const char* field, const char* got) {
    return ThrowsMessage<Error>(AllOf(HasSubstr(field), HasSubstr(got)));
  };
  const std::vector<int64_t> negative = {3, -1};
  EXPECT_THAT([] { causal({.queries = 3, .keys = 2}); }, refused("queries", "got 3"));
  EXPECT_THAT([] { causal({.queries = -1, .keys = 2}); }, refused("queries", "got -1"));
  EXPECT_THAT([] { bidirectional({.queries = 0, .keys = -2}); }, refused("keys", "got -2"));
  EXPECT_THAT([] { windowed({.queries = 1, .keys = 2}, 0); }, refused("window", "got 0"));
  EXPECT_THAT([&] { packed(negative); }, refused("lengths", "got -1"));
  EXPECT_THAT([&] { packed_diagonals(negative); }, refused("lengths", "got -1"));
  EXPECT_THAT([] { causal_diagonals({}, -1); }, refused("window", "got -1"));
  EXPECT_THAT(
      [] {
        OwnedPlan({{.queries = 2, .keys = 2}}, {{0, 1}}, {});
      },
      refused("key_ranges.size()", "got 1"));
  EXPECT_THAT([] { within({{.batch = 1}, {}}, {}); }, refused("frames.batch", "got -1"));
  EXPECT_THAT([] { within({{.query_row = -3, .queries = 2}}, {}); },
              refused("frames.query_row", "got -3"));
  EXPECT_THAT([] { within({{.batch = -2}}, {}); }, refused("frames.batch", "got -2"));
  EXPECT_THAT([] { within({}, {.left = -1}); }, refused("left", "got -1"));
  EXPECT_THAT([] { within({}, {.right = -1}); }, refused("right", "got -1"));
}

}  // namespace
}  // namespace sextant
