// ggml's flash attention over the data of a decoding step, without positions.
#include <cstddef>
#include <memory>
#include <vector>

#include "bench/decode/engine.h"
#include "bench/ggml_graph.h"

namespace sextant::bench {
namespace {

ggml_type type_of(const DecodeSizes& sizes) {
  if (sizes.int8) return GGML_TYPE_Q8_0;
  if (sizes.dtype == DType::kBfloat16) return GGML_TYPE_BF16;
  return sizes.dtype == DType::kFloat16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
}

// The rows of a layer as Q8_0, with a scale for 32 columns.
std::vector<std::byte> quantized(const AnyView<const float>& x) {
  const HostAnyView rows(x);
  std::vector<float> wide;
  for (int64_t h = 0; h < x.heads; ++h)
    for (int64_t i = 0; i < x.rows; ++i)
      for (int64_t c = 0; c < x.columns; ++c) wide.push_back(rows(0, h, i, c));
  std::vector<std::byte> to(ggml_row_size(GGML_TYPE_Q8_0, x.columns) *
                            static_cast<size_t>(x.heads * x.rows));
  ggml_quantize_chunk(GGML_TYPE_Q8_0, wide.data(), to.data(), 0, x.heads * x.rows, x.columns,
                      nullptr);
  return to;
}

// One flash attention for each layer, on the memory of the data.
class Layers {
 public:
  Layers(const DecodeData& data, int threads, std::span<float> out)
      : graph_(static_cast<size_t>(4 * data.sizes.layers + 4)) {
    const DecodeSizes& s = data.sizes;
    ggml_tensor* q = tensor(GGML_TYPE_F32, 1, s.heads, s.head_dim, data.q.data());
    for (int64_t layer = 0; layer < s.layers; ++layer) {
      ggml_tensor* k = stored(data.keys(layer), s);
      ggml_tensor* v = stored(data.values(layer), s);
      ggml_tensor* result = ggml_flash_attn_ext(graph_.context(), q, k, v, nullptr,
                                                static_cast<float>(s.scale()), 0, 0);
      result->data = out.data();
      graph_.add(result);
    }
    graph_.plan(threads);
  }

  void compute() { graph_.compute(); }

 private:
  ggml_tensor* stored(const AnyView<const float>& x, const DecodeSizes& sizes) {
    const void* data = sizes.int8 ? quantized_.emplace_back(quantized(x)).data() : x.data;
    return tensor(type_of(sizes), x.rows, x.heads, x.columns, data);
  }

  // [heads, rows, columns]; ggml counts dimensions from the innermost one. Operands are not
  // written.
  ggml_tensor* tensor(ggml_type type, int64_t rows, int64_t heads, int64_t columns,
                      const void* data) {
    ggml_tensor* t = ggml_new_tensor_4d(graph_.context(), type, columns, rows, heads, 1);
    t->data = const_cast<void*>(data);
    return t;
  }

  std::vector<std::vector<std::byte>> quantized_;
  GgmlGraph graph_;
};

}  // namespace

bool has_ggml_decode() { return true; }

std::function<void()> ggml_call(const DecodeData& data, int threads, std::span<float> out) {
  return [layers = std::make_shared<Layers>(data, threads, out)] { layers->compute(); };
}

}  // namespace sextant::bench
