// A query with equal scores for two keys returns the mean of their values.
#include <array>
#include <cstdint>

#include "sextant/attention/attend.h"

int main() {
  const std::array<float, 1> q{1};
  const std::array<float, 2> k{3, 3}, v{10, 20};
  const std::array<sextant::KeyRange, 1> key_ranges{{{.first = 0, .last = 2}}};
  float out = 0, lse = 0;

  // [batch, heads, rows, columns] = [1, 1, rows, 1], contiguous rows.
  const auto view = [](auto* data, int64_t rows) {
    return sextant::View{data, 1, 1, rows, 1, 0, 0, 1, 1};
  };
  const sextant::Score<float> score = {
      {.q = view(q.data(), 1), .k = view(k.data(), 2), .v = view(v.data(), 2)},
      {.frames = {{.queries = 1, .keys = 2}}, .sweeps = {{.key_ranges = key_ranges.data()}}}};
  sextant::attend(score, {.out = view(&out, 1), .lse = view(&lse, 1)}, sextant::cpu_backend(),
                  sextant::serial_executor());
  return out == 15 ? 0 : 1;
}
