// The objects behind the C API's pointers, and the conversion of its arguments.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/spectrum.h"
#include "sextant/sextant.h"

struct sextant_pool {
  std::unique_ptr<sextant::Executor> executor;
};
struct sextant_rope {
  sextant::Rotation rotation;
};
struct sextant_cache {
  sextant::KvCache cache;
};

namespace sextant::c {

// Throws Error if a pointer that the function needs is null.
template <class T>
T& need(T* pointer, const char* name) {
  if (!pointer) fail(std::string(name) + ": expected a pointer, but got NULL");
  return *pointer;
}

// Stores a new object in the caller's pointer. Throws Error, before it makes the object, if that
// is null.
template <class T, class Content>
void give(T** to, const char* name, Content&& content) {
  T*& place = need(to, name);
  place = new T{std::forward<Content>(content)};
}

const Executor& executor_of(const sextant_pool* pool);
// Throws Error if the dtype is none of the enumeration.
DType dtype_of(sextant_dtype dtype, const char* name);
// Throws Error if a size is negative, if the sizes have a product above kLargestView (a size of 0
// counts as 1), or as dtype_of().
AnyView<float> view_of(const sextant_array& array, const char* name);
// The same for an array that the call needs: throws Error, too, if it is absent or has elements and
// no data.
AnyView<float> operand_of(const sextant_array& array, const char* name);
// The same for an array that is written: throws Error, too, if elements share memory by a stride of
// 0.
AnyView<float> output_of(const sextant_array& array, const char* name);
// Throws Error unless the elements are float32.
View<float> as_float(const AnyView<float>& view, const char* name);
// The scale, for 0 that of D columns. Throws Error if that is infinite.
double scale_of(double scale, int64_t columns);
// A table of biases by distance, or null if the array is absent. Throws Error if it has sizes and
// no data, or if there are rows for it and it is absent.
View<const float> bias_of(const sextant_array& table, bool has_rows, const char* name);
// Sets bias, its rows and the sink of a score whose q and diagonals are set.
void set_bias_and_sink(const sextant_bias& bias, const float* sink, Score<float>& score);
// Checks q, k, v and out against each other, before memory is spent on a plan for them.
void check_shapes(const Operands<float>& operands, const Plan& plan, const AnyView<float>& out);
// Attends, with memory for the log-sum-exp if the caller wants none.
void attend_into(const Score<float>& score, const sextant_array* out, const sextant_array* lse,
                 const sextant_pool* pool);

}  // namespace sextant::c
