// One decoding step: 8 query heads on 2 key heads, 1000 cached keys, RoPE stretched by YaRN.
#include <cmath>
#include <cstdio>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/stretch/yarn.h"

using namespace sextant;

struct Heads {  // [1, heads, rows, columns]
  int64_t heads, rows, columns;
  std::vector<float> data = std::vector<float>(heads * rows * columns);
  View<float> view() {
    return {data.data(), 1, heads, rows, columns, 0, rows * columns, columns, 1};
  }
};

Heads waves(int64_t heads, int64_t rows) {
  Heads x{heads, rows, 64};
  for (size_t n = 0; n < x.data.size(); ++n) x.data[n] = std::sin(0.37f * static_cast<float>(n));
  return x;
}

int main() {
  Heads q = waves(8, 1), k = waves(2, 1000), v = waves(2, 1000), out{8, 1, 64}, lse{8, 1, 1};
  const Yarn yarn = {.factor = 4, .original_length = 32768, .base = 1e6};
  const Rotation rope = rotation(stretched(rotary({.dim = 64, .base = 1e6}), yarn));

  KvCache cache({.key_heads = 2, .key_columns = 64, .value_columns = 64});
  const int64_t sequence = cache.add();
  cache.append(sequence, k.view(), v.view());
  const CachedBatch::Entry entries[] = {{sequence, &rope}};
  const CachedBatch batch(cache, entries, /*queries=*/1);
  Score<float> score = {{.q = q.view(), .scale = 0.125}};
  batch.place(score);  // keys, values, pages, positions

  const auto threads = make_thread_pool(2);
  for (const Backend* backend : {&cpu_backend(), &reference_backend()}) {
    attend<float>(score, {out.view(), lse.view()}, *backend, *threads);
    std::printf("%-9.*s  out[0] %.7f  log-sum-exp[0] %.6f\n",
                static_cast<int>(backend->name.size()), backend->name.data(), out.data[0],
                lse.data[0]);
  }
}
