#include "sextant/torch/layout.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<int64_t> values(const at::Tensor& x) {
  const at::Tensor flat = x.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

TEST(Layout, QueriesSeeKeysUpToTheirOwnPosition) {
  const Layout decode = {.queries = 2, .keys = 5, .first_query = 13, .first_key = 10};
  EXPECT_THAT(values(visible_ranges(decode)), ElementsAre(0, 4, 0, 5));
  EXPECT_THAT(values(query_positions(decode)), ElementsAre(13, 14));
  EXPECT_THAT(values(key_positions(decode)), ElementsAre(10, 11, 12, 13, 14));
  EXPECT_THAT(values(frames(decode)), ElementsAre(-1, 0, 2, 13, 0, 5, 10));
}

// Two sequences of 3 and 18 rows in pages of 16, the second from position 100 on.
const Layout kCached = {.queries = 3,
                        .keys = 48,
                        .cached = {{.queries = 1, .query_position = 2, .keys = 3},
                                   {.query_row = 1,
                                    .queries = 2,
                                    .query_position = 116,
                                    .key_row = 16,
                                    .keys = 18,
                                    .key_position = 100}}};

TEST(Layout, CachedTextsLieApartAtPositionsOfTheirOwn) {
  EXPECT_THAT(values(visible_ranges(kCached)), ElementsAre(0, 3, 16, 33, 16, 34));
  EXPECT_THAT(values(query_positions(kCached)), ElementsAre(2, 116, 117));
  EXPECT_THAT(values(sequence_starts(kCached)), ElementsAre(0, 100, 100));
  const std::vector<int64_t> keys = values(key_positions(kCached));
  ASSERT_EQ(keys.size(), 48);
  for (const auto& [row, position] :
       {std::pair{2, 2}, {3, 0}, {15, 0}, {16, 100}, {33, 117}, {34, 0}})
    EXPECT_EQ(keys[static_cast<size_t>(row)], position) << row;
  EXPECT_EQ(kCached.farthest_distance(), 17);
}

TEST(Layout, RefusesCachedTextsThatOverlap) {
  const auto fails = [](auto change, const char* says) {
    Layout p = kCached;
    change(p);
    EXPECT_THAT([&] { sequences(p); }, ThrowsMessage<Error>(HasSubstr(says)));
  };
  fails([](Layout& p) { p.cached[1].key_row = 2; }, "cached.key_row: expected at least 3");
  fails([](Layout& p) { p.cached[1].query_row = 2; }, "cached.query_row: expected 1");
  fails([](Layout& p) { p.cached[1].keys = 33; }, "cached.keys: expected 0 to 32");
  fails([](Layout& p) { p.cached[1].queries = 1; }, "cached.queries: expected 3 in all");
  fails([](Layout& p) { p.packed_queries = {0, 3}; }, "cached: expected no packed sequences");
}

TEST(Layout, WithoutACausalMaskEverythingIsSeen) {
  const Layout whole = {.queries = 2, .keys = 3, .causal = false};
  EXPECT_THAT(values(visible_ranges(whole)), ElementsAre(0, 3, 0, 3));
}

TEST(Layout, AWindowReachesToBothSides) {
  const Layout p = {.queries = 4, .keys = 4};
  constexpr int64_t kFar = int64_t{1} << 52;
  EXPECT_THAT(values(near_ranges(p, 1, 1)), ElementsAre(0, 2, 0, 3, 1, 4, 2, 4));
  EXPECT_THAT(values(near_ranges(p, kFar, kFar)), ElementsAre(0, 4, 0, 4, 0, 4, 0, 4));
  EXPECT_THAT(values(near_ranges(p, 2, 0)), ElementsAre(0, 1, 0, 2, 0, 3, 1, 4));
}

TEST(Layout, ChunksAreCutByPosition) {
  const Layout decode = {.queries = 2, .keys = 5, .first_query = 13, .first_key = 10};
  EXPECT_THAT(values(chunk_ranges(decode, 4, 0)), ElementsAre(2, 5, 2, 5));
  EXPECT_THAT(values(chunk_ranges(decode, 4, 14)), ElementsAre(0, 4, 4, 5));
  EXPECT_THAT(values(chunk_ranges(decode, 2, 0, 1)), ElementsAre(0, 5, 2, 5));
  EXPECT_THAT(values(first_ranges(decode, 2)), ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(values(first_ranges(decode, 9)), ElementsAre(0, 5, 0, 5));
}

TEST(Layout, TimesArePositionsUnlessGiven) {
  Layout p = {.queries = 1, .keys = 2, .first_query = 1};
  EXPECT_THAT(values(key_rotary_positions(p, 2)), ElementsAre(0, 1, 0, 1));
  p.key_rotary_positions = at::tensor({7, 9}, at::kLong).view({1, 1, 2});
  EXPECT_THAT(values(key_rotary_positions(p, 1)), ElementsAre(7, 9));
  EXPECT_THAT(values(query_rotary_positions(p, 1)), ElementsAre(1));
  EXPECT_THAT([&] { key_rotary_positions(p, 3); },
              ThrowsMessage<Error>(HasSubstr("expected 3 axes")));
}

TEST(Layout, PackedTextsStartAgainAndTheirQueriesAreTheLast) {
  const Layout p = {
      .queries = 5, .keys = 7, .packed_queries = {0, 2, 2, 5}, .packed_keys = {0, 3, 4, 7}};
  EXPECT_THAT(values(query_positions(p)), ElementsAre(1, 2, 0, 1, 2));
  EXPECT_THAT(values(key_positions(p)), ElementsAre(0, 1, 2, 0, 0, 1, 2));
  EXPECT_THAT(values(visible_ranges(p)), ElementsAre(0, 2, 0, 3, 4, 5, 4, 6, 4, 7));
  EXPECT_THAT(values(frames(p)), ElementsAre(-1, 0, 2, 1, 0, 3, 0,  //
                                             -1, 2, 0, 1, 3, 1, 0,  //
                                             -1, 2, 3, 0, 4, 3, 0));
}

TEST(Layout, DistancesAreThoseThatAreSeen) {
  struct Case {
    Layout layout;
    int64_t farthest, count;
  };
  for (const auto& [p, farthest, count] : {
           Case{{.queries = 4, .keys = 4}, 3, 4},
           Case{{.queries = 4, .keys = 4, .causal = false}, 3, 7},
           Case{{.queries = 1, .keys = 9, .first_query = 8}, 8, 9},
           Case{{.queries = 2, .keys = 2, .first_key = 5, .causal = false}, -4, 3},
           Case{{.queries = 2, .keys = 2, .first_key = 5}, -1, 0},  // all keys are in the future
           Case{{.queries = 0, .keys = 3}, -1, 0},
           Case{{.queries = 5, .keys = 7, .packed_queries = {0, 2, 5}, .packed_keys = {0, 3, 7}},
                3,
                4},
       }) {
    EXPECT_EQ(p.diagonals().farthest, farthest);
    EXPECT_EQ(p.diagonals().count, count);
    EXPECT_EQ(p.farthest_distance() - p.nearest_distance() + 1, count);
  }
}

TEST(Layout, WhatDoesNotFitIsRefused) {
  const auto fails = [](const char* sequence, const Layout& p) {
    EXPECT_THAT([&] { sequences(p); }, ThrowsMessage<Error>(HasSubstr(sequence)));
  };
  fails("layout: keys: expected at least 0, but got -1", {.keys = -1});
  fails("packed_keys: expected cumulative lengths",
        {.queries = 2, .keys = 2, .packed_queries = {0, 2}});
  fails("packed_queries: expected to start at 0",
        {.queries = 2, .keys = 2, .packed_queries = {1, 2}, .packed_keys = {0, 2}});
  fails("packed_keys: expected to end at 2 rows",
        {.queries = 2, .keys = 2, .packed_queries = {0, 2}, .packed_keys = {0, 1}});
  fails("packed_keys: expected cumulative lengths that never fall",
        {.queries = 2, .keys = 2, .packed_queries = {0, 1, 2}, .packed_keys = {0, 3, 2}});
  fails("packed_keys: expected 2 entries",
        {.queries = 2, .keys = 2, .packed_queries = {0, 2}, .packed_keys = {0, 1, 2}});
  fails(
      "first_query: expected 0",
      {.queries = 1, .keys = 1, .first_query = 3, .packed_queries = {0, 1}, .packed_keys = {0, 1}});
}

}  // namespace
}  // namespace sextant
