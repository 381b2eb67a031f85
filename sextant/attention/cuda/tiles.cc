#include "sextant/attention/cuda/tiles.h"

namespace sextant::cuda {
namespace {

// Takes blocks of shared memory, one behind the other, on multiples of 16 bytes.
class Layout {
 public:
  int32_t take(int64_t elements, int64_t size) {
    const int32_t at = bytes_;
    bytes_ += round_up(elements * size, 16);
    return at;
  }
  int32_t bytes() const { return bytes_; }

 private:
  int32_t bytes_ = 0;
};

}  // namespace

SharedTiles shared_tiles(Kernel kernel, Instance instance, const Holds& holds) {
  const int64_t size = instance.type == Stored::kFloat32 ? 4 : 2, tile = instance.tile;
  const int64_t row = instance.width + 16 / size;  // kRowOf (tile.cuh)
  SharedTiles to;
  Layout layout;
  to.q = layout.take(tile * row, size);
  to.q_raw = holds.q_raw ? layout.take(tile * row, size) : to.q;
  if (holds.q_imag) to.q_imag = layout.take(tile * row, size);
  to.k = layout.take(tile * row, size);
  to.k_raw = holds.k_raw ? layout.take(tile * row, size) : to.k;
  if (holds.v) to.v = layout.take(tile * row, size);
  if (holds.d_out) to.d_out = layout.take(tile * row, size);
  if (holds.table) to.table = layout.take(2 * tile * row, size);
  if (holds.by_diagonal) to.by_diagonal = layout.take(4 * tile, sizeof(float));
  // The rows are those of Sizes (scores.cuh) and of table_gradients.cuh.
  if (holds.skew) to.skew = layout.take(tile * (tile + 20), sizeof(float));
  if (holds.saved) to.saved = layout.take(3 * tile * tile, sizeof(float));
  if (holds.weights) to.weights = layout.take(tile * (tile + 8), size);
  if (kernel == Kernel::kTableGradients)
    to.skewed = layout.take(tile * (2 * tile + 8), size);
  else if (kernel == Kernel::kScalarGradients)
    to.skewed = layout.take(tile * (2 * tile + 4), sizeof(float));
  else if (holds.skewed)
    to.skewed = layout.take(tile * (tile + 24), size);
  if (holds.axis_rows) to.axis_rows = layout.take(tile * tile, sizeof(int32_t));
  to.bytes = layout.bytes();
  return to;
}

}  // namespace sextant::cuda
