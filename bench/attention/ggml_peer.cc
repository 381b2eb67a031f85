#include "bench/attention/ggml_peer.h"

#include <ATen/ATen.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <memory>
#include <vector>

#include "sextant/base/error.h"

namespace sextant::bench {
namespace {

ggml_type type_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kBFloat16:
      return GGML_TYPE_BF16;
    case at::kHalf:
      return GGML_TYPE_F16;
    default:
      return GGML_TYPE_F32;
  }
}

// A graph of up to two rotations and attention, on the memory of tensors.
class Graph {
 public:
  Graph(const GgmlAttention& a, int threads)
      : context_(ggml_init({.mem_size = kTensors * ggml_tensor_overhead() + ggml_graph_overhead(),
                            .no_alloc = true}),
                 ggml_free) {
    ggml_cpu_init();
    ggml_tensor* q = on_tensor(a.q);
    ggml_tensor* k = on_tensor(a.k);
    if (a.rotates) {
      q = rotated(q, a.q);
      k = rotated(k, a.k);
    }
    ggml_tensor* mask = a.mask.defined()
                            ? on_tensor(a.mask.to(at::kHalf).view({1, 1, a.mask.size(0), -1}))
                            : nullptr;
    ggml_tensor* result =
        ggml_flash_attn_ext(context_.get(), q, k, on_tensor(a.v), mask, static_cast<float>(a.scale),
                            static_cast<float>(a.most_bias), 0);
    result_ = with_memory(result);
    graph_ = ggml_new_graph(context_.get());
    ggml_build_forward_expand(graph_, result);
    ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
    pool.poll = 0;  // spinning threads between calls would take the cores from the other side
    pool_ = {ggml_threadpool_new(&pool), ggml_threadpool_free};
    plan_ = ggml_graph_plan(graph_, threads, pool_.get());
    work_.resize(plan_.work_size);
    plan_.work_data = work_.data();
  }

  at::Tensor compute() {
    if (ggml_graph_compute(graph_, &plan_) != GGML_STATUS_SUCCESS)
      fail("bench: ggml could not compute its graph");
    return result_.transpose(1, 2);
  }

 private:
  static constexpr size_t kTensors = 16;

  // ggml counts dimensions from the innermost one.
  ggml_tensor* on_tensor(const at::Tensor& x) {
    held_.push_back(x);
    ggml_tensor* t =
        ggml_new_tensor_4d(context_.get(), type_of(x), x.size(3), x.size(2), x.size(1), x.size(0));
    for (int n = 0; n < 4; ++n) t->nb[n] = static_cast<size_t>(x.stride(3 - n)) * x.element_size();
    t->data = x.data_ptr();
    return t;
  }

  // Allocates the result of an operator, as a tensor of its shape.
  at::Tensor with_memory(ggml_tensor* t) {
    const at::Tensor& x =
        held_.emplace_back(at::empty({t->ne[3], t->ne[2], t->ne[1], t->ne[0]}, at::kFloat));
    t->data = x.data_ptr();
    return x;
  }

  // Rotates each row of x, [batch, heads, rows, columns], by its index. ggml takes the positions
  // along the third dimension.
  ggml_tensor* rotated(ggml_tensor* x, const at::Tensor& of) {
    ggml_tensor* rows = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I32, of.size(2));
    rows->data = held_.emplace_back(at::arange(of.size(2), at::kInt)).data_ptr();
    ggml_tensor* result =
        ggml_rope_ext(context_.get(), ggml_permute(context_.get(), x, 0, 2, 1, 3), rows, nullptr,
                      static_cast<int>(of.size(3)), GGML_ROPE_TYPE_NEOX, 0, 10000, 1, 0, 1, 32, 1);
    with_memory(result);
    return ggml_permute(context_.get(), result, 0, 2, 1, 3);
  }

  std::unique_ptr<ggml_context, void (*)(ggml_context*)> context_;
  std::unique_ptr<ggml_threadpool, void (*)(ggml_threadpool*)> pool_{nullptr, ggml_threadpool_free};
  std::vector<at::Tensor> held_;
  at::Tensor result_;
  ggml_cgraph* graph_ = nullptr;
  ggml_cplan plan_ = {};
  std::vector<uint8_t> work_;
};

}  // namespace

bool has_ggml() { return true; }

std::function<at::Tensor()> ggml_attention(const GgmlAttention& attention, int threads) {
  return [graph = std::make_shared<Graph>(attention, threads)] { return graph->compute(); };
}

}  // namespace sextant::bench
