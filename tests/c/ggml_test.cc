// Attention as an operation of a ggml graph, against the equation in double. The operation runs in
// ggml where the build has found it, else in a stand-in with the same structs.
#include <ggml.h>
#ifndef GGML_STAND_IN
#include <ggml-cpu.h>
#endif

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "sextant/base/half.h"
#include "sextant/ggml.h"
#include "sextant/sextant.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kColumns = 24, kValueColumns = 16, kHeads = 6, kKeyHeads = 2, kQueries = 37,
                  kKeys = 53, kBatch = 2, kDistances = kQueries + kKeys - 1;

// A graph's tensors, in memory of the test.
class Graph {
 public:
#ifdef GGML_STAND_IN
  Graph() : context_(new ggml_context(), [](ggml_context* c) { delete c; }) {}
#else
  Graph() : context_(ggml_init({.mem_size = 1 << 20, .no_alloc = true}), ggml_free) {}
#endif
  ggml_context* context() const { return context_.get(); }

  // Numbers between -1 and 1, in the type of the tensor.
  ggml_tensor* random(ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    ggml_tensor* t = ggml_new_tensor_4d(context(), type, ne0, ne1, ne2, ne3);
    const auto count = static_cast<size_t>(ne0 * ne1 * ne2 * ne3), size = ggml_type_size(type);
    std::vector<char>& memory = *memory_.emplace_back(new std::vector<char>(count * size));
    for (size_t n = 0; n < count; ++n) {
      seed_ = seed_ * 1664525U + 1013904223U;
      const float x = static_cast<float>(seed_ >> 8) / 8388608.0F - 1;
      const auto half = narrowed<Float16>(x);
      const auto brain = narrowed<Bfloat16>(x);
      const void* from = type == GGML_TYPE_F32   ? static_cast<const void*>(&x)
                         : type == GGML_TYPE_F16 ? static_cast<const void*>(&half)
                                                 : static_cast<const void*>(&brain);
      std::memcpy(memory.data() + n * size, from, size);
    }
    t->data = memory.data();
    return t;
  }
  std::vector<float> compute(ggml_tensor* result, int threads) {
    std::vector<float> out(
        static_cast<size_t>(result->ne[0] * result->ne[1] * result->ne[2] * result->ne[3]));
    result->data = out.data();
#ifdef GGML_STAND_IN
    std::vector<std::thread> all;
    for (int ith = 0; ith < threads; ++ith)
      all.emplace_back([=] { stand_in_compute(result, ith, threads); });
    for (std::thread& thread : all) thread.join();
#else
    ggml_cgraph* graph = ggml_new_graph(context());
    ggml_build_forward_expand(graph, result);
    ggml_cplan plan = ggml_graph_plan(graph, threads, nullptr);
    std::vector<uint8_t> work(plan.work_size + 64);
    plan.work_data = work.data();
    EXPECT_EQ(ggml_graph_compute(graph, &plan), GGML_STATUS_SUCCESS);
#endif
    return out;
  }

 private:
  std::unique_ptr<ggml_context, void (*)(ggml_context*)> context_;
  std::vector<std::unique_ptr<std::vector<char>>> memory_;
  uint32_t seed_ = 1;
};

double at(const ggml_tensor* t, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
  const char* p = static_cast<const char*>(t->data) + static_cast<size_t>(n0) * t->nb[0] +
                  static_cast<size_t>(n1) * t->nb[1] + static_cast<size_t>(n2) * t->nb[2] +
                  static_cast<size_t>(n3) * t->nb[3];
  if (t->type == GGML_TYPE_F32) return static_cast<double>(*reinterpret_cast<const float*>(p));
  if (t->type == GGML_TYPE_F16)
    return static_cast<double>(to_float(*reinterpret_cast<const Float16*>(p)));
  return static_cast<double>(to_float(*reinterpret_cast<const Bfloat16*>(p)));
}

struct Tensors {
  ggml_tensor *q, *k, *v, *on_query = nullptr, *bias = nullptr;
};

// The queries are the last rows; tables have a row for each distance, farthest first.
double output(const Tensors& t, bool causal, int64_t b, int64_t h, int64_t i, int64_t c) {
  const int64_t group = h / (kHeads / kKeyHeads), position = kKeys - kQueries + i;
  double sum = 0, value = 0;
  for (int64_t j = 0; j <= (causal ? position : kKeys - 1); ++j) {
    const int64_t row = kKeys - 1 - (position - j);
    double score = 0;
    for (int64_t d = 0; d < kColumns; ++d)
      score += at(t.q, d, i, h, b) *
               (at(t.k, d, j, group, b) + (t.on_query ? at(t.on_query, d, row, h, 0) : 0));
    score /= std::sqrt(static_cast<double>(kColumns));
    const double p = std::exp(score + (t.bias ? at(t.bias, 0, row, 0, 0) : 0));
    sum += p;
    value += p * at(t.v, c, j, group, b);
  }
  return value / sum;
}

void expect_the_equation(const std::vector<float>& out, const Tensors& t, bool causal) {
  size_t n = 0;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t i = 0; i < kQueries; ++i)
      for (int64_t h = 0; h < kHeads; ++h)
        for (int64_t c = 0; c < kValueColumns; ++c, ++n)
          ASSERT_NEAR(static_cast<double>(out[n]), output(t, causal, b, h, i, c), 2e-6)
              << b << " " << i << " " << h << " " << c;
}

// As engines hold them: rows of all heads, and views with the heads outside.
Tensors tensors(Graph& graph, ggml_type type) {
  const auto by_head = [&](ggml_tensor* t) { return ggml_permute(graph.context(), t, 0, 2, 1, 3); };
  return {by_head(graph.random(GGML_TYPE_F32, kColumns, kHeads, kQueries, kBatch)),
          by_head(graph.random(type, kColumns, kKeyHeads, kKeys, kBatch)),
          by_head(graph.random(type, kValueColumns, kKeyHeads, kKeys, kBatch))};
}

TEST(Ggml, AttendsInEveryTypeWithTheSameBitsForAnyNumberOfThreads) {
  for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16})
    for (const bool causal : {true, false}) {
      SCOPED_TRACE(type);
      Graph graph;
      const Tensors t = tensors(graph, type);
      SEXTANT_NEW(sextant_ggml, op);
      op.attention.sees = causal ? SEXTANT_CAUSAL : SEXTANT_ALL_KEYS;
      ggml_tensor* result = sextant_ggml_attention(graph.context(), t.q, t.k, t.v, &op);
      ASSERT_TRUE(result) << sextant_error();
      const std::vector<float> out = graph.compute(result, 1);
      expect_the_equation(out, t, causal);
      for (const int threads : {2, 3}) EXPECT_EQ(graph.compute(result, threads), out);
      sextant_plan_destroy(op.plan);
    }
}

TEST(Ggml, TakesTablesThatAreTensorsAndAPlanOfAnotherLayer) {
  Graph graph;
  sextant_plan* plan = nullptr;
  for (int layer = 0; layer < 2; ++layer) {
    Tensors t = tensors(graph, GGML_TYPE_F32);
    t.on_query = ggml_permute(
        graph.context(), graph.random(GGML_TYPE_F32, kColumns, kHeads, kDistances, 1), 0, 2, 1, 3);
    t.bias = graph.random(GGML_TYPE_F32, 1, kDistances, 1, 1);
    SEXTANT_NEW(sextant_ggml, op);
    op.attention.sees = SEXTANT_ALL_KEYS;
    op.on_query = t.on_query;
    op.bias = t.bias;
    op.plan = plan;
    ggml_tensor* result = sextant_ggml_attention(graph.context(), t.q, t.k, t.v, &op);
    ASSERT_TRUE(result) << sextant_error();
    if (plan) {
      EXPECT_EQ(op.plan, plan);
    }
    plan = op.plan;
    expect_the_equation(graph.compute(result, 2), t, false);
  }
  sextant_plan_destroy(plan);
}

TEST(Ggml, RefusesWhatDoesNotFit) {
  Graph graph;
  const Tensors t = tensors(graph, GGML_TYPE_F32);
  SEXTANT_NEW(sextant_ggml, op);
  ggml_tensor* quantized =
      ggml_new_tensor_4d(graph.context(), GGML_TYPE_Q8_0, 32, kKeys, kKeyHeads, kBatch);
  EXPECT_FALSE(sextant_ggml_attention(graph.context(), t.q, quantized, t.v, &op));
  EXPECT_THAT(sextant_error(), HasSubstr("k.dtype"));
  EXPECT_FALSE(sextant_ggml_attention(graph.context(), t.q, t.v, t.v, &op));
  EXPECT_THAT(sextant_error(), HasSubstr("k.columns: expected 24"));
  EXPECT_FALSE(op.plan);
  op.size = 0;
  EXPECT_FALSE(sextant_ggml_attention(graph.context(), t.q, t.k, t.v, &op));
  EXPECT_THAT(sextant_error(), HasSubstr("ggml: size: expected sizeof(sextant_ggml)"));
}

}  // namespace
}  // namespace sextant
