// Decoding with a cache in bfloat16: a prompt of 100 tokens, then one token at a time. 8 query
// heads read 2 key heads; RoPE is stretched by YaRN. Each step's result is compared with that of
// the whole sequence at once, over keys and values that are rounded alike.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/layouts.h"
#include "sextant/base/executor.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/stretch/yarn.h"

using namespace sextant;

constexpr int64_t kHeads = 8, kKeyHeads = 2, kColumns = 64, kPrompt = 100, kTokens = 20;
constexpr int64_t kRows = kPrompt + kTokens;

// Activations as the rows of a layer's projections, [rows, heads, columns]. A view of some rows
// has the layout [batch, heads, rows, columns] by its strides; nothing is copied.
template <class Number>
struct Activations {
  int64_t heads;
  std::vector<Number> data = std::vector<Number>(static_cast<size_t>(kRows * heads * kColumns));

  View<const Number> rows(int64_t first, int64_t count) const {
    const int64_t row = heads * kColumns;
    return {data.data() + first * row, 1, heads, count, kColumns, 0, kColumns, row, 1};
  }
};

Activations<float> waves(int64_t heads, float speed) {
  Activations<float> x{heads};
  for (size_t n = 0; n < x.data.size(); ++n) x.data[n] = std::sin(speed * static_cast<float>(n));
  return x;
}

Activations<Bfloat16> rounded(const Activations<float>& x) {
  Activations<Bfloat16> narrow{x.heads};
  std::ranges::transform(x.data, narrow.data.begin(), narrowed<Bfloat16>);
  return narrow;
}

// The whole sequence at once, [heads, rows, columns].
std::vector<float> prefill(const Activations<float>& q, const Activations<Bfloat16>& k,
                           const Activations<Bfloat16>& v, const Rotation& rope) {
  const OwnedPlan layout = causal({.queries = kRows, .keys = kRows}, rope);
  std::vector<float> out(static_cast<size_t>(kHeads * kRows * kColumns));
  std::vector<float> lse(static_cast<size_t>(kHeads * kRows));
  const Score<float> score = {
      {.q = q.rows(0, kRows), .k = k.rows(0, kRows), .v = v.rows(0, kRows), .scale = 0.125},
      layout.plan()};
  attend<float>(score,
                {contiguous(out, {.heads = kHeads, .rows = kRows, .columns = kColumns}),
                 contiguous(lse, {.heads = kHeads, .rows = kRows})},
                cpu_backend());
  return out;
}

int main() {
  const Activations<float> q = waves(kHeads, 0.37F), k = waves(kKeyHeads, 0.11F),
                           v = waves(kKeyHeads, 0.73F);
  const Yarn yarn = {.factor = 4, .original_length = 32768, .base = 1e6};
  const Rotation rope = rotation(stretched(rotary({.dim = kColumns, .base = 1e6}), yarn));
  const std::vector<float> whole = prefill(q, rounded(k), rounded(v), rope);

  KvCache cache({.key_heads = kKeyHeads,
                 .key_columns = kColumns,
                 .value_columns = kColumns,
                 .dtype = DType::kBfloat16});
  const int64_t sequence = cache.add();
  cache.append(sequence, k.rows(0, kPrompt), v.rows(0, kPrompt));  // rounded to bfloat16
  const auto threads = make_thread_pool(2);
  double difference = 0;
  for (int64_t row = kPrompt; row < kRows; ++row) {
    cache.append(sequence, k.rows(row, 1), v.rows(row, 1));
    const CachedBatch::Entry entries[] = {{sequence, &rope}};
    const CachedBatch batch(cache, entries, /*queries=*/1);
    Score<float> score = {{.q = q.rows(row, 1), .scale = 0.125}, {}};
    batch.place(score);  // keys, values, pages, positions
    std::vector<float> out(static_cast<size_t>(kHeads * kColumns)), lse(kHeads);
    attend<float>(score,
                  {contiguous(out, {.heads = kHeads, .columns = kColumns}),
                   contiguous(lse, {.heads = kHeads})},
                  cpu_backend(), *threads);
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t c = 0; c < kColumns; ++c)
        difference = std::fmax(difference,
                               std::fabs(static_cast<double>(
                                   out[static_cast<size_t>(h * kColumns + c)] -
                                   whole[static_cast<size_t>((h * kRows + row) * kColumns + c)])));
  }
  std::printf("decoded %d tokens, equal to prefill: %s\n", static_cast<int>(kTokens),
              difference == 0 ? "yes" : "no");
  return difference == 0 ? 0 : 1;
}
