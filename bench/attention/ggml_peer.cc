#include "bench/attention/ggml_peer.h"

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "bench/ggml_graph.h"

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

// Up to two rotations and attention, on the memory of tensors.
class Attention {
 public:
  Attention(const GgmlAttention& a, int threads) : graph_(kTensors) {
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
        ggml_flash_attn_ext(graph_.context(), q, k, on_tensor(a.v), mask,
                            static_cast<float>(a.scale), static_cast<float>(a.most_bias), 0);
    result_ = with_memory(result);
    graph_.add(result);
    graph_.plan(threads);
  }

  at::Tensor compute() {
    graph_.compute();
    return result_.transpose(1, 2);
  }

 private:
  static constexpr size_t kTensors = 16;

  // ggml counts dimensions from the innermost one.
  ggml_tensor* on_tensor(const at::Tensor& x) {
    held_.push_back(x);
    ggml_tensor* t = ggml_new_tensor_4d(graph_.context(), type_of(x), x.size(3), x.size(2),
                                        x.size(1), x.size(0));
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
    ggml_tensor* rows = ggml_new_tensor_1d(graph_.context(), GGML_TYPE_I32, of.size(2));
    rows->data = held_.emplace_back(at::arange(of.size(2), at::kInt)).data_ptr();
    ggml_tensor* result = ggml_rope_ext(
        graph_.context(), ggml_permute(graph_.context(), x, 0, 2, 1, 3), rows, nullptr,
        static_cast<int>(of.size(3)), GGML_ROPE_TYPE_NEOX, 0, 10000, 1, 0, 1, 32, 1);
    with_memory(result);
    return ggml_permute(graph_.context(), result, 0, 2, 1, 3);
  }

  GgmlGraph graph_;
  std::vector<at::Tensor> held_;
  at::Tensor result_;
};

}  // namespace

bool has_ggml() { return true; }

std::function<at::Tensor()> ggml_attention(const GgmlAttention& attention, int threads) {
  return [made = std::make_shared<Attention>(attention, threads)] { return made->compute(); };
}

}  // namespace sextant::bench
