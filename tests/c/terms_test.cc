// The ready-made terms, against the equations of their papers in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "sextant/position/buckets.h"
#include "sextant/sextant.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kHeads = 2, kRows = 11, kColumns = 6;

std::vector<float> random_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = normal(random);
  return x;
}

sextant_array array(const std::vector<float>& x, int64_t heads, int64_t rows, int64_t columns) {
  return sextant_contiguous(x.data(), SEXTANT_FLOAT32, 1, heads, rows, columns);
}

double dot(const float* a, const float* b) {
  double sum = 0;
  for (int64_t c = 0; c < kColumns; ++c) sum += double{a[c]} * double{b[c]};
  return sum;
}

struct Model {
  std::vector<float> q = random_numbers(kHeads * kRows * kColumns, 1);
  std::vector<float> k = random_numbers(kHeads * kRows * kColumns, 2);
  std::vector<float> v = random_numbers(kHeads * kRows * kColumns, 3);
  std::vector<float> out = std::vector<float>(q.size());
  sextant_attention call = {sizeof call};
  sextant_terms terms = {sizeof terms};
  int64_t farthest = 0, count = 0;

  Model() {
    call.q = array(q, kHeads, kRows, kColumns), call.k = array(k, kHeads, kRows, kColumns);
    call.v = array(v, kHeads, kRows, kColumns);
    call.sees = SEXTANT_ALL_KEYS;
    call.terms = &terms;
    EXPECT_EQ(sextant_attention_diagonals(&call, &farthest, &count), SEXTANT_OK);
  }
  const float* row(const std::vector<float>& x, int64_t h, int64_t i) const {
    return x.data() + (h * kRows + i) * kColumns;
  }
  // Expects attention with the scores f(h, i, j).
  void expect(const std::function<double(int64_t, int64_t, int64_t)>& score) {
    const sextant_array result = array(out, kHeads, kRows, kColumns);
    ASSERT_EQ(sextant_attend(&call, &result, nullptr, nullptr), SEXTANT_OK) << sextant_error();
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t c = 0; c < kColumns; ++c) {
          double sum = 0, value = 0;
          for (int64_t j = 0; j < kRows; ++j) {
            const double e = std::exp(score(h, i, j));
            sum += e;
            value += e * double{row(v, h, j)[c]};
          }
          ASSERT_NEAR(row(out, h, i)[c], value / sum, 2e-6) << h << " " << i << " " << c;
        }
  }
};

TEST(CTerms, ConformersHaveTheEquationOfTransformerXl) {
  for (const int64_t table_heads : {kHeads, int64_t{1}}) {
    Model m;
    const std::vector<float> q = m.q, u = random_numbers(kHeads * kColumns, 4),
                             w = random_numbers(kHeads * kColumns, 5),
                             r = random_numbers(table_heads * m.count * kColumns, 6);
    const sextant_array table = array(r, table_heads, m.count, kColumns);
    std::vector<float> bias(static_cast<size_t>(kHeads * m.count));
    ASSERT_EQ(
        sextant_conformer_terms(u.data(), w.data(), &table, 0, &m.call.q, bias.data(), &m.terms),
        SEXTANT_OK)
        << sextant_error();
    m.expect([&](int64_t h, int64_t i, int64_t j) {
      std::vector<float> with_u, with_w;
      for (int64_t c = 0; c < kColumns; ++c) {
        with_u.push_back(m.row(q, h, i)[c] + u[h * kColumns + c]);
        with_w.push_back(m.row(q, h, i)[c] + w[h * kColumns + c]);
      }
      const int64_t diagonal = m.farthest - (i - j);
      const float* of_distance =
          r.data() + ((table_heads == 1 ? 0 : h) * m.count + diagonal) * kColumns;
      return (dot(with_u.data(), m.row(m.k, h, j)) + dot(with_w.data(), of_distance)) /
             std::sqrt(double{kColumns});
    });
  }
}

TEST(CTerms, DebertaHasBothDirections) {
  for (const int64_t buckets : {0, 4})
    for (const bool both : {true, false}) {
      Model m;
      const int64_t most = 7, rows = buckets > 0 ? 2 * buckets : 2 * most;
      const std::vector<float> keys = random_numbers(kHeads * rows * kColumns, 4);
      const std::vector<float> queries = random_numbers(kHeads * rows * kColumns, 5);
      const sextant_array of_keys = array(keys, kHeads, rows, kColumns);
      const sextant_array of_queries = array(queries, kHeads, rows, kColumns);
      std::vector<int32_t> map(static_cast<size_t>(m.count));
      m.call.scale = 1 / std::sqrt(double{kColumns} * (both ? 3 : 2));
      ASSERT_EQ(sextant_deberta_terms(&of_keys, both ? &of_queries : nullptr, buckets, most,
                                      m.farthest, m.count, map.data(), &m.terms),
                SEXTANT_OK)
          << sextant_error();
      const auto row_of = [&](int64_t d) {
        if (buckets > 0) return DebertaBuckets({.buckets = buckets, .max_positions = most}).row(d);
        return std::clamp<int64_t>(d + most, 0, 2 * most - 1);
      };
      m.expect([&](int64_t h, int64_t i, int64_t j) {
        const int64_t at = (h * rows + row_of(i - j)) * kColumns;
        return m.call.scale *
               (dot(m.row(m.q, h, i), m.row(m.k, h, j)) + dot(m.row(m.q, h, i), keys.data() + at) +
                (both ? dot(m.row(m.k, h, j), queries.data() + at) : 0));
      });
    }
}

TEST(CTerms, AlibiIsTheSlopeTimesTheDistance) {
  Model m;
  std::vector<float> bias(static_cast<size_t>(kHeads * m.count));
  ASSERT_EQ(sextant_alibi_terms(kHeads, 8, m.farthest, m.count, bias.data(), &m.terms), SEXTANT_OK);
  m.expect([&](int64_t h, int64_t i, int64_t j) {
    return dot(m.row(m.q, h, i), m.row(m.k, h, j)) / std::sqrt(double{kColumns}) -
           std::pow(2.0, -4.0 * static_cast<double>(h + 1)) * std::abs(static_cast<double>(i - j));
  });
}

// T5's table is [buckets, heads] in checkpoints.
TEST(CTerms, T5ReadsTheTableOfACheckpoint) {
  Model m;
  const std::vector<float> table = random_numbers(32 * kHeads, 7);
  std::vector<int32_t> map(static_cast<size_t>(m.count));
  ASSERT_EQ(sextant_t5_rows(32, 128, 1, m.farthest, m.count, map.data()), SEXTANT_OK);
  m.terms.bias = {.table = array(table, kHeads, 32, 1), .rows = map.data()};
  m.terms.bias.table.head_stride = 1, m.terms.bias.table.row_stride = kHeads;
  m.call.scale = 1;
  const T5Buckets buckets({});
  m.expect([&](int64_t h, int64_t i, int64_t j) {
    return dot(m.row(m.q, h, i), m.row(m.k, h, j)) +
           double{table[buckets.bucket(i - j) * kHeads + h]};
  });
}

TEST(CTerms, RefuseTablesThatDoNotFit) {
  Model m;
  const auto refused = [](sextant_status status, const char* message) {
    EXPECT_EQ(status, SEXTANT_BAD_ARGUMENT);
    EXPECT_THAT(sextant_error(), HasSubstr(message));
  };
  const std::vector<float> x = random_numbers(1000, 4);
  std::vector<float> bias(1000);
  std::vector<int32_t> map(1000);
  sextant_array r = array(x, 3, m.count, kColumns);
  const auto conformer = [&] {
    return sextant_conformer_terms(x.data(), x.data(), &r, 0, &m.call.q, bias.data(), &m.terms);
  };
  refused(conformer(), "r: expected 1 or 2 heads of 6 columns, as q, but got 3");
  r = array(x, 1, m.count, kColumns - 1);
  refused(conformer(), "but got 1 of 5");
  r = array(x, 1, 7, kColumns);
  const auto deberta = [&](int64_t buckets, int64_t most) {
    return sextant_deberta_terms(&r, nullptr, buckets, most, m.farthest, m.count, map.data(),
                                 &m.terms);
  };
  refused(deberta(4, 7), "position_keys: expected 1 x heads x 8 x D, but got 1 x heads x 7");
  refused(deberta(-1, 7), "buckets, max_positions: expected at least 0 and 1");
  refused(deberta(4, 0), "buckets, max_positions: expected at least 0 and 1");
  r = array(x, 1, 6, kColumns);
  refused(deberta(3, 7), "buckets");
  m.terms.size = 4;
  r = array(x, 1, 8, kColumns);
  refused(deberta(4, 7), "terms.size");
  refused(sextant_alibi_terms(0, 8, 1, 1, bias.data(), &m.terms), "heads");
  refused(sextant_t5_rows(32, 128, 1, 0, -1, map.data()), "count: expected 0 to 2^52, but got -1");
  EXPECT_EQ(m.terms.on_query.rows, nullptr) << "a call that fails changes nothing";
}

}  // namespace
}  // namespace sextant
