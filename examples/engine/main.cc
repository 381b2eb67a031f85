#include <cstdio>

#include "sextant/attention/attend.h"

int main() {  // a query at position 1 and keys at 0 and 1, of one channel; ALiBi with slope 1/2
  const float bias[] = {-0.5f, 0};
  float q[] = {1}, k[] = {3, 3}, v[] = {10, 20}, out = 0, lse = 0;
  const auto view = [](float* x, int64_t rows) {  // [batch, heads, rows, columns] by strides
    return sextant::View<float>{x, 1, 1, rows, 1, 0, 0, 1, 1};
  };
  const sextant::Run visible = {0, 2};
  sextant::Score<float> score = {.q = view(q, 1), .k = view(k, 2), .v = view(v, 2)};
  score.frames = {{.queries = 1, .query_position = 1, .keys = 2}};
  score.sweeps = {{.runs = &visible}};
  score.diagonals = {.farthest = 1, .count = 2};  // the bias of distances 1 and 0:
  score.bias.rows = {bias, 1, 1, 2, 1, 0, 0, 1, 1};
  sextant::attend<float>(score, {view(&out, 1), view(&lse, 1)}, sextant::cpu_backend(),
                         sextant::serial_executor());
  std::printf("%.4f\n", out);  // (10 e^-0.5 + 20) / (e^-0.5 + 1)
}
