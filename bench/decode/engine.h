// Attention of one token in some layers, each with its own cache: the part of decoding whose cost
// grows with the length of the cache.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sextant/base/aligned_memory.h"
#include "sextant/base/executor.h"
#include "sextant/base/view.h"

namespace sextant::bench {

struct DecodeSizes {
  int64_t layers = 2, heads = 32, key_heads = 8, head_dim = 128, keys = 4096;
  DType dtype = DType::kBfloat16;
  bool int8 = false;  // the cache rounds pages of these keys and values to integers

  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }
  // Bytes of the keys, and of the values, of all layers in the cache.
  int64_t key_bytes() const;
  int64_t value_bytes() const;
};

// Keys and values of the layers, [layers][key heads, keys, head_dim], of type `dtype`; and q
// [heads, 1, head_dim] in float32.
struct DecodeData {
  explicit DecodeData(const DecodeSizes& sizes);

  View<const float> query() const;
  AnyView<const float> keys(int64_t layer) const { return view(k, layer); }
  AnyView<const float> values(int64_t layer) const { return view(v, layer); }

  DecodeSizes sizes;
  std::vector<float> q;
  std::vector<std::byte, LinesAllocator<std::byte>> k, v;

 private:
  AnyView<const float> view(std::span<const std::byte> all, int64_t layer) const;
};

enum class Positions { kNone, kRope, kRopeRotatedKeys };

// Sextant, over a paged cache. A call computes the result of the last layer into `out`, [heads,
// head_dim]; the arguments outlive it.
std::function<void()> sextant_call(const DecodeData& data, Positions positions,
                                   const Executor& executor, std::span<float> out);

// ggml's flash attention, if the build found ggml, without positions. int8: over Q8_0.
bool has_ggml_decode();
std::function<void()> ggml_call(const DecodeData& data, int threads, std::span<float> out);

}  // namespace sextant::bench
