#include "bench/ggml_graph.h"

#include <ggml-backend.h>

#include "sextant/base/error.h"

namespace sextant::bench {

GgmlGraph::GgmlGraph(size_t tensors)
    : context_(ggml_init({.mem_size = tensors * ggml_tensor_overhead() + ggml_graph_overhead(),
                          .no_alloc = true}),
               ggml_free),
      graph_(ggml_new_graph(context_.get())) {
  ggml_cpu_init();
}

ggml_tensor* GgmlGraph::constant(ggml_type type, const void* data, int64_t ne0, int64_t ne1,
                                 int64_t ne2, int64_t ne3) {
  ggml_tensor* t = ggml_new_tensor_4d(context(), type, ne0, ne1, ne2, ne3);
  t->data = const_cast<void*>(data);
  return t;
}

size_t GgmlGraph::allocate() {
  memory_ = {ggml_gallocr_new(ggml_backend_cpu_buffer_type()), ggml_gallocr_free};
  if (!ggml_gallocr_alloc_graph(memory_.get(), graph_))
    fail("bench: ggml could not allocate its graph");
  return ggml_gallocr_get_buffer_size(memory_.get(), 0);
}

void GgmlGraph::plan(int threads) {
  ggml_threadpool_params pool = ggml_threadpool_params_default(threads);
  pool.poll = 0;  // spinning threads between calls would take the cores from the other side
  pool_ = {ggml_threadpool_new(&pool), ggml_threadpool_free};
  plan_ = ggml_graph_plan(graph_, threads, pool_.get());
  work_.resize(plan_.work_size);
  plan_.work_data = work_.data();
}

void GgmlGraph::compute() {
  if (ggml_graph_compute(graph_, &plan_) != GGML_STATUS_SUCCESS)
    fail("bench: ggml could not compute its graph");
}

}  // namespace sextant::bench
