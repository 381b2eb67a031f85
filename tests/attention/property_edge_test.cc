// Operands that no query sees have no effect, whatever they hold; the value of a key that is seen
// alone is returned unchanged.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/attention/property.h"

namespace sextant::oracle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Edge : public Property {};

// The keys that query row i sees.
KeyRange seen_by(const Problem<float>& p, int64_t i) {
  const KeyRange range = p.sweeps[0].key_ranges[static_cast<size_t>(i)];
  return {std::max<int64_t>(range.first, 0), std::min(range.last, p.k.rows)};
}
bool sees(const Problem<float>& p, int64_t i, int64_t j) {
  const KeyRange range = seen_by(p, i);
  return range.first <= j && j < range.last;
}
bool sees_nothing(const Problem<float>& p, int64_t i) {
  const KeyRange range = seen_by(p, i);
  return range.first >= range.last;
}
// Whether query row i sees a key at a distance that maps to `row` of the table A (on_query). The
// last query row is at the position of the last key.
bool meets(const Problem<float>& p, int64_t i, int64_t row) {
  const KeyRange range = seen_by(p, i);
  for (int64_t j = range.first; j < range.last; ++j) {
    const int64_t n = p.diagonals.index(p.k.rows - p.q.rows + i - j);
    if (p.on_query.row_at[static_cast<size_t>(n)] == row) return true;
  }
  return false;
}
bool is_seen(const Problem<float>& p, int64_t j) {
  for (int64_t i = 0; i < p.q.rows; ++i) {
    if (sees(p, i, j)) return true;
  }
  return false;
}

void fill_row(Tensor<float>& x, int64_t row, float value) {
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t c = 0; c < x.columns; ++c) x(b, h, row, c) = value;
    }
  }
}
bool row_is(const Tensor<float>& x, int64_t row, float value) {
  const Tensor<float> one = rows_of(x, row, 1);
  return std::all_of(one.data.begin(), one.data.end(),
                     [=](float y) { return y == value || (std::isnan(y) && std::isnan(value)); });
}

TEST_P(Edge, AQueryThatSeesNothingGivesZerosAndGetsNoGradient) {
  check([&](Draw draw) -> std::string {
    draw.key_ranges = Draw::KeyRanges::kRagged;
    draw.sink = false;
    const Problem<float> p = make_problem(draw);
    const Outcome got = outcome(p, random_d_out(p, draw.seed), backend());
    for (int64_t i = 0; i < p.q.rows; ++i) {
      if (!sees_nothing(p, i)) continue;
      const std::string query = "query " + std::to_string(i) + ": ";
      if (!row_is(got.result.out, i, 0)) return query + "out is not 0";
      if (!row_is(got.result.lse, i, -kInfinity)) return query + "lse is not -infinity";
      if (!row_is(got.gradients.q, i, 0)) return query + "dq is not 0";
    }
    for (int64_t j = 0; j < p.k.rows; ++j) {
      if (is_seen(p, j)) continue;
      if (!row_is(got.gradients.k, j, 0) || !row_is(got.gradients.v, j, 0)) {
        return "key " + std::to_string(j) + ": nobody sees it, but it gets a gradient";
      }
    }
    return "";
  });
}

// NaN and infinities in keys that no query sees, in queries that see no key, and in the gradients
// from above of such queries.
TEST_P(Edge, PoisonThatNobodySeesHasNoEffect) {
  check([&](Draw draw) {
    draw.key_ranges = Draw::KeyRanges::kRagged;
    draw.sink = false;
    const Problem<float> p = make_problem(draw);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    Problem<float> poisoned = p;
    Tensor<float> d_poisoned = d_out;
    for (int64_t j = 0; j < p.k.rows; ++j) {
      if (is_seen(p, j)) continue;
      fill_row(poisoned.k, j, kNan);
      fill_row(poisoned.v, j, kInfinity);
    }
    for (int64_t i = 0; i < p.q.rows; ++i) {
      if (!sees_nothing(p, i)) continue;
      fill_row(poisoned.q, i, kNan);
      if (draw.q_imag) fill_row(poisoned.q_imag, i, kNan);
      fill_row(d_poisoned, i, kNan);
    }
    return difference_beside(backend(), outcome(p, d_out, backend()),
                             outcome(poisoned, d_poisoned, backend()));
  });
}

// Describes the first error in `got`, the results with a NaN in an operand that the queries of
// meets() use; empty if there is none. `clean`: the results without it.
template <class Meets>
std::string wrong_with_nan(const Backend& backend, const Result<float>& clean,
                           const Result<float>& got, const Meets& meets) {
  for (int64_t i = 0; i < got.out.rows; ++i) {
    const std::string query = "query " + std::to_string(i) + ": ";
    if (meets(i)) {
      if (!row_is(got.out, i, kNan)) return query + "meets a NaN and gives numbers";
      continue;
    }
    const std::string wrong =
        difference_beside(backend, "out", rows_of(clean.out, i, 1), rows_of(got.out, i, 1));
    if (!wrong.empty()) return query + wrong;
  }
  return "";
}

TEST_P(Edge, ANanReachesTheQueriesThatSeeItAndNoOther) {
  check([&](const Draw& draw) -> std::string {
    const Problem<float> p = make_problem(draw);
    const int64_t j = *rc::gen::inRange<int64_t>(0, draw.keys);
    const Result<float> clean = attend(p.score(), backend());
    for (const bool in_keys : {true, false}) {
      Problem<float> poisoned = p;
      fill_row(in_keys ? poisoned.k : poisoned.v, j, kNan);
      const std::string wrong =
          wrong_with_nan(backend(), clean, attend(poisoned.score(), backend()),
                         [&](int64_t i) { return sees(p, i, j); });
      if (!wrong.empty()) return (in_keys ? "k, " : "v, ") + wrong;
    }
    return "";
  });
}

// The first and last rows of the table serve the far keys, which may be all keys that a query sees.
TEST_P(Edge, ANanInTheTableOfQueriesReachesThoseThatMeetItsRowAndNoOther) {
  check([&](Draw draw) -> std::string {
    draw.on_query = true;
    draw.clip = std::max<int64_t>(draw.clip, 1);
    const Problem<float> p = make_problem(draw);
    const Result<float> clean = attend(p.score(), backend());
    for (const int64_t row : {int64_t{0}, draw.clip, 2 * draw.clip}) {
      Problem<float> poisoned = p;
      fill_row(poisoned.on_query.rows, row, kNan);
      const std::string wrong =
          wrong_with_nan(backend(), clean, attend(poisoned.score(), backend()),
                         [&](int64_t i) { return meets(p, i, row); });
      if (!wrong.empty()) return "row " + std::to_string(row) + ", " + wrong;
    }
    return "";
  });
}

TEST_P(Edge, WeightsSumToOne) {
  check([&](Draw draw) -> std::string {
    draw.on_value = draw.sink = false;
    Problem<float> p = make_problem(draw);
    std::fill(p.v.data.begin(), p.v.data.end(), 1.0F);
    const Tensor<float> out = attend(p.score(), backend()).out;
    for (int64_t i = 0; i < p.q.rows; ++i) {
      if (sees_nothing(p, i)) continue;
      for (const float x : rows_of(out, i, 1).data) {
        if (!(std::abs(x - 1) <= 4 * 0x1p-24)) {
          return "query " + std::to_string(i) + ": 1 " + std::to_string((x - 1) * 0x1p24) +
                 " * 2^-24";
        }
      }
    }
    return "";
  });
}

TEST_P(Edge, AKeySeenAloneGivesItsValueExactly) {
  check([&](Draw draw) {
    draw.on_value = draw.sink = false;
    draw.queries = std::min(draw.queries, draw.keys);
    Problem<float> p = make_problem(draw);
    for (int64_t i = 0; i < draw.queries; ++i) {
      p.sweeps[0].key_ranges[static_cast<size_t>(i)] = {i, i + 1};
    }
    const Tensor<float> out = attend(p.score(), backend()).out;
    Tensor<float> values(out.batch, out.heads, out.rows, out.columns);
    for (int64_t b = 0; b < out.batch; ++b) {
      for (int64_t h = 0; h < out.heads; ++h) {
        for (int64_t i = 0; i < out.rows; ++i) {
          for (int64_t c = 0; c < out.columns; ++c) {
            values(b, h, i, c) = p.v(b, h / (draw.heads / draw.key_heads), i, c);
          }
        }
      }
    }
    return difference_in_bits("out", out, values);
  });
}

// Scores far from 0 are ordinary scores: no finite value means "hidden".
TEST_P(Edge, HugeBiasesThatAreEqualGiveTheMeanOfWhatIsSeen) {
  for (const float huge : {-1e30F, -3e38F, 1e30F, 3e38F}) {
    check([&](Draw draw) -> std::string {
      draw.bias = true;
      draw.on_value = draw.sink = false;
      Problem<float> p = make_problem(draw);
      std::fill(p.bias.rows.data.begin(), p.bias.rows.data.end(), huge);
      Problem<float> flat = p;  // all scores 0
      flat.bias = flat.on_query = flat.on_key = {};
      for (Tensor<float>* q : {&flat.q, &flat.q_imag}) {
        std::fill(q->data.begin(), q->data.end(), 0.0F);
      }
      const Result<float> mean = attend(flat.score(), backend());
      const Result<float> got = attend(p.score(), backend());
      const Tensor<float> d_out = random_d_out(flat, draw.seed);
      return difference("out", got.out, mean.out, bounds_of(flat, d_out).result.out);
    });
  }
}

// A weight may be flushed to 0 only below 2^-110.
TEST_P(Edge, SmallWeightsOfLargeValuesCount) {
  for (const double score : {60.0, 70.0, 76.0, 77.0, 100.0, 200.0}) {
    Problem<float> p;
    p.q = Tensor<float>(1, 1, 1, 1);
    p.k = p.v = Tensor<float>(1, 1, 2, 1);
    p.q(0, 0, 0, 0) = 1;
    p.k(0, 0, 1, 0) = static_cast<float>(-score);
    p.v(0, 0, 1, 0) = 0x1p100F;
    place_plainly(p, 1, whole_ranges(1, 2));
    const double exact = 0x1p100 * std::exp(-score);
    const float out = attend(p.score(), backend()).out(0, 0, 0, 0);
    EXPECT_LE(std::abs(out - exact), 0x1p-110 * 0x1p100 + 0x1p-16 * exact) << score;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Edge, testing::ValuesIn(float32_backends()), backend_name);

}  // namespace
}  // namespace sextant::oracle
