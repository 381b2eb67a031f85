// Products of matrices by Intel's AMX: tiles of sixteen rows of 64 bytes, and one instruction that
// multiplies two of them, whose numbers are bfloat16, and adds to a third in float32.
//
//   c[i][j] (+)= sum over k of  a(i, k) * b(k, j)         i < 16 * row_blocks, j < 16 * blocks, k <
//   32 * steps
//
// Operands lie in pairs, one pair in the place of a float32, and as one or three parts: a number of
// one part is a bfloat16, one of three is their sum, which a float32 is exactly but for underflow
// (bfloat16-inl.h). Of the nine products of parts the six greatest are added up, so a product of
// two numbers is off by up to 2^-23 of itself, to either side; of normal random numbers by 2^-26
// (root of the mean square), where rounding it would leave 2^-25.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sextant::amx {

inline constexpr int64_t kSide = 16;   // rows and columns of a tile
inline constexpr int64_t kDepth = 32;  // of a step

// Pairs of so many numbers, for whole steps.
constexpr int64_t paired(int64_t n) { return (n + kDepth - 1) / kDepth * (kDepth / 2); }

// Whether processor and system have it. Asks the system for leave, once.
bool available();

// The tiles of this thread, for as long as it lives; then they are configured as they were, for
// other libraries use them.
class Tiles {
 public:
  Tiles();
  ~Tiles();
  Tiles(const Tiles&) = delete;

 private:
  [[maybe_unused]] alignas(64) std::byte before_[64];
};

// Of part n, row i and pair m: data[n * part_step + i * row_step + m].
struct Left {
  const float* data;
  int64_t term_step, row_step;
};
// Of part n, pair m and column j: data[n * part_step + m * depth_step + j / 16 * block_step + j %
// 16].
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

// Products in pieces of some hundred cycles, to be made between other work: then tiles and vectors
// work at once.
class TileQueue {
 public:
  void add(const Product& product);
  // The sums of rows of a product's left side instead, bit by bit what it would be if b were 1:
  // sixteen times the same, c[row][kTotals], rows kTotals apart. What the product says of b is not
  // read.
  static constexpr int64_t kTotals = 16;
  void add_totals(Product product, float* c);
  void multiply_all() { multiply_some(left_); }
  // Shares out what there is to so many calls of multiply_share().
  void share(int64_t calls);
  void multiply_share() {
    due_ += share_;
    if (due_ >= kWhole && left_ > 0) multiply_some(due_ / kWhole);
    due_ %= kWhole;
  }

 private:
  static constexpr int64_t kWhole = 1024;  // a piece
  void multiply_some(int64_t pieces);      // or as many as are left
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
  int64_t row_block_ = 0, block_ = 0, step_ = 0, phase_ = 0;  // of the first
};

}  // namespace sextant::amx
