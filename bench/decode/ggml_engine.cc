// ggml's flash attention over the data of a decoding step, without positions.
#include <memory>

#include "bench/decode/engine.h"
#include "bench/ggml_graph.h"

namespace sextant::bench {
namespace {

ggml_type type_of(DType dtype) {
  if (dtype == DType::kBfloat16) return GGML_TYPE_BF16;
  return dtype == DType::kFloat16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
}

// One flash attention for each layer, on the memory of the data.
class Layers {
 public:
  Layers(const DecodeData& data, int threads, std::span<float> out)
      : graph_(static_cast<size_t>(4 * data.sizes.layers + 4)) {
    const DecodeSizes& s = data.sizes;
    ggml_tensor* q = tensor(GGML_TYPE_F32, 1, s.heads, s.head_dim, data.q.data());
    for (int64_t layer = 0; layer < s.layers; ++layer) {
      ggml_tensor* k =
          tensor(type_of(s.dtype), s.keys, s.key_heads, s.head_dim, data.keys(layer).data);
      ggml_tensor* v =
          tensor(type_of(s.dtype), s.keys, s.key_heads, s.head_dim, data.values(layer).data);
      ggml_tensor* result = ggml_flash_attn_ext(graph_.context(), q, k, v, nullptr,
                                                static_cast<float>(s.scale()), 0, 0);
      result->data = out.data();
      graph_.add(result);
    }
    graph_.plan(threads);
  }

  void compute() { graph_.compute(); }

 private:
  // [heads, rows, columns]; ggml counts dimensions from the innermost one. Operands are not
  // written.
  ggml_tensor* tensor(ggml_type type, int64_t rows, int64_t heads, int64_t columns,
                      const void* data) {
    ggml_tensor* t = ggml_new_tensor_4d(graph_.context(), type, columns, rows, heads, 1);
    t->data = const_cast<void*>(data);
    return t;
  }

  GgmlGraph graph_;
};

}  // namespace

bool has_ggml_decode() { return true; }

std::function<void()> ggml_call(const DecodeData& data, int threads, std::span<float> out) {
  return [layers = std::make_shared<Layers>(data, threads, out)] { layers->compute(); };
}

}  // namespace sextant::bench
