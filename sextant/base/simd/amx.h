// Matrix products on Intel AMX: a tile is sixteen rows of 64 bytes, and one instruction multiplies
// two tiles of bfloat16 and adds the product to a third tile in float32.
//
//   c[i][j] (+)= sum over k of  a(i, k) * b(k, j)
//   i < 16 * row_blocks, j < 16 * blocks, k < 32 * steps
//
// Operands store pairs of bfloat16, one pair in the place of a float32, as one or three terms. With
// one term a value is a bfloat16; with three it is the sum of its terms, which represents a float32
// exactly, underflow aside (bfloat16-inl.h). Only the six largest of the nine products of terms are
// added, so the product of two values has a relative error of up to 2^-23, of either sign; for
// normally distributed values the root mean square of the error is 2^-26, where rounding the
// product to float32 would leave 2^-25.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sextant::amx {

inline constexpr int64_t kSide = 16;   // rows of a tile, and its columns of float32
inline constexpr int64_t kDepth = 32;  // depth of a step

// Pairs that n values take, padded to whole steps.
constexpr int64_t paired(int64_t n) { return (n + kDepth - 1) / kDepth * (kDepth / 2); }

// Whether the processor and the operating system support AMX. Requests the permission of the
// operating system, once.
bool available();

// Configures the tile registers of this thread. The destructor restores the previous configuration,
// because other libraries use the tiles too.
class Tiles {
 public:
  Tiles();
  ~Tiles();
  Tiles(const Tiles&) = delete;

 private:
  [[maybe_unused]] alignas(64) std::byte before_[64];
};

// Pair m of row i of term n is at data[n * term_step + i * row_step + m].
struct Left {
  const float* data;
  int64_t term_step, row_step;
};
// Pair m of column j of term n is at
//   data[n * term_step + m * depth_step + j / 16 * block_step + j % 16].
struct Right {
  const float* data;
  int64_t term_step, depth_step, block_step;
};

struct Product {
  int64_t terms;  // 1 or 3
  int64_t row_blocks, blocks, steps;
  Left a;
  Right b;
  float* c;
  int64_t c_row;
  bool adds;
};

void multiply(const Product& product);

// A queue of products that are computed in pieces of some hundred cycles, interleaved with other
// work, so that the tile unit and the vector units run at the same time.
class TileQueue {
 public:
  void add(const Product& product);
  // Adds the row sums of a product's left side, bitwise equal to the product with b = 1. Each sum
  // is written sixteen times, to c[row][kTotals], with kTotals floats per row. product.b and
  // product.c are ignored.
  static constexpr int64_t kTotals = 16;
  void add_totals(Product product, float* c);
  void multiply_all() { multiply_some(left_); }
  // Divides the queued pieces over the given number of calls of multiply_share().
  void share(int64_t calls);
  void multiply_share() {
    due_ += share_;
    if (due_ >= kWhole && left_ > 0) multiply_some(due_ / kWhole);
    due_ %= kWhole;
  }

 private:
  static constexpr int64_t kWhole = 1024;  // one piece, in units of share_
  void multiply_some(int64_t pieces);      // or as many as remain
  struct Request {
    Product product;
    bool totals;
  };
  void add(const Request& request, int64_t pieces);
  void multiply_one(const Request& request);
  void next_block(const Product& product);

  std::vector<Request> list_;
  size_t first_ = 0;
  int64_t left_ = 0, share_ = 0, due_ = 0;
  int64_t row_block_ = 0, block_ = 0, step_ = 0, phase_ = 0;  // position in list_[first_]
};

}  // namespace sextant::amx
