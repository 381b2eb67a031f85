// Random operands of the score equation, each of which can be switched on; tests of backends draw
// their cases from here.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sextant/attention/score.h"

namespace sextant {

struct RandomOptions {
  int64_t batch = 2, heads = 4, key_heads = 2;
  int64_t queries = 7, keys = 9;  // query i is at the position of key keys - queries + i
  int64_t columns = 8, value_columns = 5;
  enum class KeyRanges {
    kCausal,
    kWhole,
    kWindow,
    kChunks,
    kRagged
  } key_ranges = KeyRanges::kCausal;
  int sweeps = 1;  // the keys of a query are split into this many ranges
  int packed = 1;  // number of frames, of about equal lengths
  int64_t first_position = 0;
  bool rotated = false, offset = false, grows = false;
  int axes = 1;
  bool weight = false, bias = false, on_query = false, on_key = false, on_value = false;
  bool query_bias = false, key_bias = false;
  // All heads share one head of each table, and all batch entries one entry of query_bias and
  // key_bias.
  bool shared_tables = false;
  int64_t clip = 0;  // rows by clipped distance, 2 clip + 1 in all; 0: one per diagonal
  bool sink = false, mask = false, q_imag = false;
  // Axes of positions: those of a grid with rows of `axis_width`, and a third whose positions have
  // no order and belong to batch entries.
  int position_axes = 0;
  int64_t axis_width = 3;
  bool axis_bias = false, axis_on_query = false;
  int64_t table_query = 0;  // columns of r; 0: there is none
  bool query_sink = false;
  double softcap = 0, dropout = 0;  // dropout: the probability; its seed is `seed`
  bool odd_strides = false;         // column stride 2, rows in reverse order, gaps between heads
  struct {
    DType q = DType::kFloat32, k = q, v = q, q_imag = q, d_out = q, out = q;
    bool computed_wide = false;  // values are rounded to these formats, but stored as T
  } dtypes = {};
  uint64_t seed = 1;
};

// Owns the memory that its score points to; T is float or double. Values are drawn in float32, so
// the same options give the same values for both types.
template <class T>
class RandomScore {
 public:
  explicit RandomScore(const RandomOptions& options);
  RandomScore(const RandomScore&) = delete;
  RandomScore& operator=(const RandomScore&) = delete;

  Score<T> score;
  AnyView<const T> d_out;  // gradient from above

  // New memory with the shapes of results and gradients, filled with `fill`.
  Attended<T> new_attended(T fill = T(77));
  ScoreGrad<T> new_grad(T fill = T(77));
  View<T> new_view(int64_t batch, int64_t heads, int64_t rows, int64_t columns, T fill = T(0));
  AnyView<T> new_view_of(DType dtype, int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                         T fill = T(0));

 private:
  T draw(double scale = 1);
  View<T> drawn(int64_t batch, int64_t heads, int64_t rows, int64_t columns, double scale = 1);
  AnyView<const T> drawn_as(DType dtype, int64_t batch, int64_t heads, int64_t rows,
                            int64_t columns);
  // A view over new memory, with odd strides if options_.odd_strides.
  template <class Number>
  View<Number> laid_out(std::deque<std::vector<Number>>& memory, int64_t batch, int64_t heads,
                        int64_t rows, int64_t columns, Number fill);
  View<const T> table(int64_t columns, double scale, std::span<const int32_t>& row_at);
  void place();
  void place_axes();
  void see();
  void rotate();
  std::vector<KeyRange> key_ranges_of(const Frame& frame, int64_t query);

  RandomOptions options_;
  std::mt19937_64 random_;
  std::deque<std::vector<T>> memory_;
  std::deque<std::vector<Bfloat16>> bfloat16_memory_;
  std::deque<std::vector<Float16>> float16_memory_;
  std::deque<std::vector<KeyRange>> key_ranges_;
  std::vector<double> key_bias_;
  std::deque<std::vector<int64_t>> times_;
  std::deque<Rotation> rotations_;
  std::deque<std::vector<Turns>> offsets_;
  std::vector<int32_t> row_at_;
  std::deque<std::vector<int32_t>> axis_rows_;
  std::vector<uint8_t> mask_;
};

template <class T>
View<const T> as_const(const View<T>& v) {
  return {v.data,         v.batch,       v.heads,      v.rows,         v.columns,
          v.batch_stride, v.head_stride, v.row_stride, v.column_stride};
}
template <class T>
Attended<const T> as_const(const Attended<T>& a) {
  return {AnyView<const T>(a.out), as_const(a.lse)};
}

std::string to_string(const RandomOptions& options);

}  // namespace sextant
