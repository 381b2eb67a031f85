#include <ggml-cpu.h>
#include <ggml.h>

#include <memory>

#include "bench/decode/engine.h"
#include "sextant/base/error.h"

namespace sextant::bench {
namespace {

ggml_type type_of(DType dtype) {
  if (dtype == DType::kBfloat16) return GGML_TYPE_BF16;
  return dtype == DType::kFloat16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
}

// A graph with one flash attention for each layer, on the memory of the data.
class Graph {
 public:
  Graph(const DecodeData& data, int threads, std::span<float> out)
      : context_(ggml_init({.mem_size = static_cast<size_t>(4 * data.sizes.layers + 4) *
                                            ggml_tensor_overhead() +
                                        ggml_graph_overhead(),
                            .no_alloc = true}),
                 ggml_free) {
    ggml_cpu_init();
    const DecodeSizes& s = data.sizes;
    ggml_tensor* q = tensor(GGML_TYPE_F32, 1, s.heads, s.head_dim, data.q.data());
    graph_ = ggml_new_graph(context_.get());
    for (int64_t layer = 0; layer < s.layers; ++layer) {
      ggml_tensor* k =
          tensor(type_of(s.dtype), s.keys, s.key_heads, s.head_dim, data.keys(layer).data);
      ggml_tensor* v =
          tensor(type_of(s.dtype), s.keys, s.key_heads, s.head_dim, data.values(layer).data);
      ggml_tensor* result = ggml_flash_attn_ext(context_.get(), q, k, v, nullptr, 0.125F, 0, 0);
      result->data = out.data();
      ggml_build_forward_expand(graph_, result);
    }
    ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
    pool.poll = 0;  // spinning threads between calls would take the cores from the other side
    pool_ = {ggml_threadpool_new(&pool), ggml_threadpool_free};
    plan_ = ggml_graph_plan(graph_, threads, pool_.get());
    work_.resize(plan_.work_size);
    plan_.work_data = work_.data();
  }

  void compute() {
    if (ggml_graph_compute(graph_, &plan_) != GGML_STATUS_SUCCESS)
      fail("bench: ggml could not compute its graph");
  }

 private:
  // [heads, rows, columns]; ggml counts dimensions from the innermost one. Operands are not
  // written.
  ggml_tensor* tensor(ggml_type type, int64_t rows, int64_t heads, int64_t columns,
                      const void* data) {
    ggml_tensor* t = ggml_new_tensor_4d(context_.get(), type, columns, rows, heads, 1);
    t->data = const_cast<void*>(data);
    return t;
  }

  std::unique_ptr<ggml_context, void (*)(ggml_context*)> context_;
  std::unique_ptr<ggml_threadpool, void (*)(ggml_threadpool*)> pool_{nullptr, ggml_threadpool_free};
  ggml_cgraph* graph_ = nullptr;
  ggml_cplan plan_ = {};
  std::vector<uint8_t> work_;
};

}  // namespace

bool has_ggml_decode() { return true; }

std::function<void()> ggml_call(const DecodeData& data, int threads, std::span<float> out) {
  return [graph = std::make_shared<Graph>(data, threads, out)] { graph->compute(); };
}

}  // namespace sextant::bench
