// Attention with a bias by distance: ALiBi, a slope per head, and T5, a learned number per bucket
// of distances. Neither needs a matrix of queries x keys. Each result is compared with the
// oracle's.
#include <cmath>
#include <cstdio>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/layouts.h"
#include "sextant/base/executor.h"
#include "sextant/position/buckets.h"
#include "sextant/position/row_map.h"
#include "sextant/position/slopes.h"

using namespace sextant;

constexpr int64_t kHeads = 6, kRows = 300, kColumns = 64;
constexpr Shape kShape = {.batch = 2, .heads = kHeads, .rows = kRows, .columns = kColumns};

std::vector<float> waves(float speed) {
  std::vector<float> x(static_cast<size_t>(2 * kHeads * kRows * kColumns));
  for (size_t n = 0; n < x.size(); ++n) x[n] = std::sin(speed * static_cast<float>(n));
  return x;
}

// Attends on the fast backend and on the oracle, and returns whether they agree.
bool attend_and_compare(const char* name, const Score<float>& score) {
  const auto threads = make_thread_pool(2);
  std::vector<float> out[2], lse(static_cast<size_t>(2 * kHeads * kRows));
  for (int n = 0; n < 2; ++n) {
    out[n].resize(static_cast<size_t>(2 * kHeads * kRows * kColumns));
    const Attended<float> result = {
        .out = contiguous(out[n], kShape),
        .lse = contiguous(lse, {.batch = 2, .heads = kHeads, .rows = kRows})};
    attend<float>(score, result, n == 0 ? cpu_backend() : reference_backend(), *threads);
  }
  double difference = 0;
  for (size_t n = 0; n < out[0].size(); ++n)
    difference = std::fmax(difference, std::fabs(static_cast<double>(out[0][n] - out[1][n])));
  std::printf("%-5s  last of out %.5f  agrees with the oracle: %s\n", name,
              static_cast<double>(out[0].back()), difference < 1e-5 ? "yes" : "no");
  return difference < 1e-5;
}

// Causal, with the bias -slope(head) distance.
bool alibi(const Operands<float>& operands) {
  const OwnedPlan layout = causal({.queries = kRows, .keys = kRows});
  const std::vector<double> slopes = alibi_slopes(kHeads);
  const auto bias = by_distance(layout.diagonals(), kHeads, [&](int64_t head, int64_t distance) {
    return -slopes[static_cast<size_t>(head)] * static_cast<double>(distance);
  });
  Score<float> score = {operands, layout.plan()};
  score.bias = contiguous(bias, {.heads = kHeads, .rows = layout.diagonals().count});
  return attend_and_compare("ALiBi", score);
}

// An encoder, with a trained table [heads, buckets], and the bucket of each distance as a row map.
// T5 does not scale its scores.
bool t5(const Operands<float>& operands) {
  const OwnedPlan layout = bidirectional({.queries = kRows, .keys = kRows});
  const T5Buckets buckets({.buckets = 32, .max_distance = 128, .bidirectional = true});
  std::vector<float> table(static_cast<size_t>(kHeads * buckets.buckets()));
  for (size_t n = 0; n < table.size(); ++n) table[n] = std::cos(static_cast<float>(n));
  const std::vector<int32_t> rows = row_map(layout.diagonals(), buckets);
  Score<float> score = {operands, layout.plan()};
  score.scale = 1;
  score.bias = contiguous(table, {.heads = kHeads, .rows = buckets.buckets()});
  score.row_at.bias = rows;
  return attend_and_compare("T5", score);
}

int main() {
  const std::vector<float> q = waves(0.37F), k = waves(0.11F), v = waves(0.73F);
  const Operands<float> operands = {.q = contiguous(q, kShape),
                                    .k = contiguous(k, kShape),
                                    .v = contiguous(v, kShape),
                                    .scale = 0.125};
  const bool alibi_agrees = alibi(operands), t5_agrees = t5(operands);
  return alibi_agrees && t5_agrees ? 0 : 1;
}
