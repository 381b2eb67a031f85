// The lists of tiles that kernels walk over cover what each query sees, once.
#include "sextant/attention/cuda/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "tests/attention/random_score.h"

namespace sextant::cuda {
namespace {

using testing::ElementsAre;

// Pairs of a query row and a key row that are visible, for each entry and sweep.
using Pairs = std::set<std::tuple<int64_t, size_t, int64_t, int64_t>>;

Pairs visible_pairs(const Plan& plan, const PlanShape& shape) {
  Pairs pairs;
  for (const Frame& frame : plan.frames)
    for (int64_t b = 0; b < shape.batch; ++b) {
      if (frame.batch != kEveryBatch && frame.batch != b) continue;
      for (size_t n = 0; n < plan.sweeps.size(); ++n)
        for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i) {
          const KeyRange seen = visible_keys(plan.sweeps[n], frame, b, i);
          for (int64_t j = seen.first; j < seen.last; ++j) pairs.insert({b, n, i, j});
        }
    }
  return pairs;
}

// The pairs that the tiles of queries reach by their spans, and those of the tiles of keys.
Pairs pairs_of_queries(const PassPlan& pass, const std::vector<Visible>& visible,
                       const PlanShape& shape, size_t sweeps, int32_t tile) {
  Pairs pairs;
  for (size_t t = 0; t < pass.query_tiles.size(); ++t) {
    const QueryTile& query = pass.query_tiles[t];
    const FrameRows& frame = pass.frames[static_cast<size_t>(query.frame)];
    for (size_t n = 0; n < sweeps; ++n) {
      const KeySpan span = pass.spans[t * sweeps + n];
      if (span.first < span.last) {
        EXPECT_EQ((span.first - frame.key_row) % tile, 0);
      }
      for (int32_t i = query.first_query;
           i < std::min(query.first_query + tile, frame.query_row + frame.queries); ++i) {
        const Visible seen =
            visible[(n * static_cast<size_t>(shape.batch) + static_cast<size_t>(query.batch)) *
                        static_cast<size_t>(shape.queries) +
                    static_cast<size_t>(i)];
        for (int64_t j = std::max<int64_t>(seen.first, span.first);
             j < std::min<int64_t>(seen.last, span.last); ++j)
          EXPECT_TRUE(pairs.insert({query.batch, n, i, j}).second);
      }
    }
  }
  return pairs;
}

Pairs pairs_of_keys(const PassPlan& pass, const Pairs& visible, int32_t tile) {
  Pairs pairs;
  for (const KeyTile& key : pass.key_tiles)
    for (int32_t p = key.first_part; p < key.first_part + key.parts; ++p) {
      const KeyTilePart& part = pass.parts[static_cast<size_t>(p)];
      const FrameRows& frame = pass.frames[static_cast<size_t>(part.frame)];
      EXPECT_EQ((part.first_query - frame.query_row) % tile, 0);
      for (int32_t i = part.first_query; i < part.last_query; ++i)
        for (int32_t j = std::max(key.first_key, frame.key_row);
             j < std::min(key.first_key + tile, frame.key_row + frame.keys); ++j) {
          const std::tuple pair(key.batch, static_cast<size_t>(part.sweep), i, j);
          if (visible.count(pair) > 0) {
            EXPECT_TRUE(pairs.insert(pair).second);
          }
        }
    }
  return pairs;
}

TEST(CudaPlan, TilesCoverWhatEachQuerySeesOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomOptions options = {.queries = 5 + static_cast<int64_t>(seed), .keys = 70};
    options.key_ranges = static_cast<RandomOptions::KeyRanges>(seed % 5);
    options.sweeps = 1 + static_cast<int>(seed % 3);
    options.packed = 1 + static_cast<int>(seed / 3 % 3);
    options.seed = seed;
    const RandomScore<float> random(options);
    const Plan& plan = random.score;
    const PlanShape shape = shape_of<float>(random.score, plan);
    const int32_t tile = seed % 2 == 0 ? 16 : 32;
    const std::vector<PassPlan> passes = passes_of(plan, shape, tile, Passes::kBoth);
    ASSERT_EQ(passes.size(), 1U);
    const Pairs expected = visible_pairs(plan, shape);
    EXPECT_EQ(
        pairs_of_queries(passes[0], visible_rows(plan, shape), shape, plan.sweeps.size(), tile),
        expected);
    EXPECT_EQ(pairs_of_keys(passes[0], expected, tile), expected);
  }
}

TEST(CudaPlan, ListsTheDiagonalsOfEachRow) {
  const int32_t row_at[] = {2, 0, 0, 2, 1};
  const DiagonalsOfRows lists = diagonals_of_rows(row_at, 5, 4);
  EXPECT_THAT(lists.row_begin, ElementsAre(0, 2, 3, 5, 5));
  EXPECT_THAT(lists.diagonal_at, ElementsAre(1, 2, 4, 0, 3));
  EXPECT_THAT(diagonals_of_rows({}, 2, 2).diagonal_at, ElementsAre(0, 1));
}

TEST(CudaPlan, RefusesColumnsThatNoTileHolds) {
  const RandomScore<float> random({.columns = 264});
  try {
    check_sizes(random.score, shape_of<float>(random.score, random.score));
    FAIL() << "expected an error";
  } catch (const std::exception& error) {
    EXPECT_STREQ(
        error.what(),
        "attention: q.columns: expected at most 256 for the backend \"cuda\", but got 264");
  }
}

}  // namespace
}  // namespace sextant::cuda
