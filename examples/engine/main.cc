#include <cstdio>

#include "sextant/attention/attend.h"
#include "sextant/cache/kv_cache.h"

int main() {  // a query at position 1 and keys at 0 and 1, of one channel; ALiBi with slope 1/2
  float q[] = {1}, k[] = {3, 3}, v[] = {10, 20}, out = 0, lse = 0;
  const float bias[] = {-0.5f, 0};                // at distances 1 and 0
  const auto view = [](float* x, int64_t rows) {  // [batch, heads, rows, columns] by strides
    return sextant::View<float>{x, 1, 1, rows, 1, 0, 0, 1, 1};
  };
  sextant::KvCache cache({.key_heads = 1, .key_columns = 1, .value_columns = 1});
  const int64_t sequence = cache.add();
  cache.append(sequence, view(k, 2), view(v, 2));
  const sextant::CachedBatch::Entry entries[] = {{sequence}};
  const sextant::CachedBatch batch(cache, entries, /*queries=*/1);
  sextant::Score<float> score = {{.q = view(q, 1)}};
  batch.place(score);  // keys, values and positions; the query's position is that of the last key
  score.bias = {bias, 1, 1, 2, 1, 0, 0, 1, 1};
  sextant::attend<float>(score, {view(&out, 1), view(&lse, 1)}, sextant::cpu_backend(),
                         sextant::serial_executor());
  std::printf("%.4f\n", out);  // (10 e^-0.5 + 20) / (e^-0.5 + 1)
}
