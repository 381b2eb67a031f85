// The objects behind the C API's pointers, and the conversion of its arguments.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"
#include "sextant/c/guard.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/spectrum.h"
#include "sextant/sextant.h"

namespace sextant::c {

// The last member of an object behind a pointer. With assertions it has an address of its type,
// while the object lives, so that need() refuses a destroyed object or one of another type.
template <class T>
struct Tag {
#ifndef NDEBUG
  static inline char of_type = 0;
  const char* volatile type = &of_type;
  ~Tag() { type = nullptr; }
#endif
};

}  // namespace sextant::c

struct sextant_pool {
  std::unique_ptr<sextant::Executor> executor;
  sextant::c::Tag<sextant_pool> tag = {};
};
struct sextant_rope {
  std::shared_ptr<const sextant::Rotation> rotation;  // never null; plans keep it, too
  sextant::c::Tag<sextant_rope> tag = {};
};
struct sextant_cache {
  sextant::KvCache cache;
#ifndef NDEBUG
  mutable std::atomic<int> calls = 0;  // that read it now; -1: one changes it
#endif
  sextant::c::Tag<sextant_cache> tag = {};
};

namespace sextant::c {

// The name of a member, as text only where a message needs it: calls of a plan allocate nothing.
struct Name {
  const char *first, *second = "", *third = "";

  // NOLINTNEXTLINE(google-explicit-constructor): a literal is a name
  Name(const char* name) : first(name) {}
  Name(const char* a, const char* b, const char* c) : first(a), second(b), third(c) {}
  std::string text() const { return std::string(first) + second + third; }
};

// Throws Error if a pointer that the function needs is null.
template <class T>
T& need(T* pointer, const char* name) {
  if (!pointer) fail(std::string(name) + ": expected a pointer, but got NULL");
#ifndef NDEBUG
  if constexpr (requires { pointer->tag; })
    if (pointer->tag.type != &pointer->tag.of_type)
      fail(std::string(name) + ": expected an object of this type that has not been destroyed");
#endif
  return *pointer;
}
template <class T>
void destroy(T* pointer, const char* name) {
  guarded([&] { delete (pointer ? &need(pointer, name) : nullptr); });
}

// Stores a new object in the caller's pointer. Throws Error, before it makes the object, if that
// is null.
template <class T, class Content>
void give(T** to, const char* name, Content&& content) {
  T*& place = need(to, name);
  place = new T{std::forward<Content>(content)};
}
inline void give_rope(sextant_rope** to, const Spectrum& spectrum) {
  give(to, "rope", std::make_shared<const Rotation>(rotation(spectrum)));
}

// Copies a struct that begins with its size. Throws Error if the pointer is null, the size is
// below `bytes`, or members beyond them are not zero.
void read_struct(const void* from, size_t bytes, const char* name, void* to);
template <class T>
T read(const T* from, const char* name) {
  T own;
  read_struct(from, sizeof(T), name, &own);
  return own;
}
// The same for a struct that may be absent, which is then all zero.
template <class T>
T read_or_none(const T* from, const char* name) {
  return from ? read(from, name) : T{};
}

// The cache of a call, which reads it if it is const and changes it otherwise. In a debug build,
// throws Error if another call changes it meanwhile, or uses what this one changes.
template <class Cache>
class Use {
 public:
  explicit Use(Cache* cache) : own_(need(cache, "cache")) {
#ifndef NDEBUG
    int calls = own_.calls;
    do {
      if (calls < 0 || (!kReads && calls > 0))
        fail("cache: expected no call beside one that changes it, but there is one");
    } while (!own_.calls.compare_exchange_weak(calls, kReads ? calls + 1 : -1));
#endif
  }
  Use(const Use&) = delete;
  ~Use() {
#ifndef NDEBUG
    own_.calls += kReads ? -1 : 1;
#endif
  }
  auto& operator*() const { return own_.cache; }
  auto* operator->() const { return &own_.cache; }

 private:
  static constexpr bool kReads = std::is_const_v<Cache>;
  Cache& own_;
};

const Executor& executor_of(const sextant_pool* pool);
// Prepares a plan for so many threads, in one.
class PlanningFor final : public Executor {
 public:
  explicit PlanningFor(int threads) : threads_(threads) {}
  int workers() const override { return threads_; }
  void run(int64_t tasks, const std::function<void(int64_t, int)>& task) const override {
    for (int64_t n = 0; n < tasks; ++n) task(n, 0);
  }

 private:
  int threads_;
};
const Rotation* rotation_of(const sextant_rope* rope);  // null: there is none
// Throws Error if the dtype is none of the enumeration, or not one of attention's arrays.
DType dtype_of(sextant_dtype dtype, const char* name);
// Throws Error if a size is negative, if the sizes have a product above kLargestView (a size of 0
// counts as 1), if strides leave the address range or are all 0, or as dtype_of().
AnyView<float> view_of(const sextant_array& array, const char* name);
// The same for an array that the call needs: throws Error, too, if it is absent, or has elements
// and no data or a column_stride of 0.
AnyView<float> operand_of(const sextant_array& array, const char* name);
// The same for an array that is written: throws Error, too, if elements share memory.
AnyView<float> output_of(const sextant_array& array, const char* name);
// Throws Error unless the elements are float32.
View<float> as_float(const AnyView<float>& view, const char* name);
// An optional array of float32, or of float64; null if it is absent. Throws Error if it has sizes
// and no data.
View<const float> optional_of(const sextant_array& array, const Name& name);
View<const double> optional_double_of(const sextant_array& array, const Name& name);
bool is_absent(const sextant_array& array);  // all sizes are 0, and there is no data
// Whether two arrays with data share memory. Arrays whose rows lie between each other's do not.
bool share_memory(const sextant_array& a, const sextant_array& b);
// The scale, for 0 that of D columns. Throws Error if that is infinite.
double scale_of(double scale, int64_t columns);
// Sets the operands of `terms`; those of the call that they fit must be set. Throws Error that
// names the member.
void set_terms(const sextant_terms& terms, int64_t keys, Operands<float>& operands);
// Throws Error if there are axes, which sequences of a cache have not.
void refuse_axes(const sextant_terms& terms, const char* call);
// f(name, table, map) for each table by distance and its member of `maps`, which has those of
// RowMaps.
template <class Terms, class Maps, class F>
void each_table(Terms& terms, Maps& maps, F&& f) {
  f("weight", terms.weight, maps.weight);
  f("bias", terms.bias, maps.bias);
  f("on_query", terms.on_query, maps.on_query);
  f("on_key", terms.on_key, maps.on_key);
  f("on_value", terms.on_value, maps.on_value);
}

// Copies of the maps of tables, each [diagonals] or empty, in memory that is used again.
struct TableMaps {
  std::vector<int32_t> weight, bias, on_query, on_key, on_value;

  void set(const sextant_terms& terms, int64_t diagonals);
  RowMaps rows() const { return {weight, bias, on_query, on_key, on_value}; }
};

// The results of a call over q, k and v (absent: in a cache); lse is in `unused` if the caller
// wants none. Throws Error if an output is wrong or shares memory with another array.
Attended<float> results_of(const sextant_array& q, const sextant_array& k, const sextant_array& v,
                           const sextant_array* out, const sextant_array* lse,
                           std::vector<float>& unused);

// The use of a plan by a call. Throws Error if another call uses it.
class OneCall {
 public:
  OneCall(std::atomic<bool>& in_use, const char* name) : in_use_(in_use) {
    if (in_use_.exchange(true))
      fail(std::string(name) + ": expected one call at a time, but another one uses it");
  }
  OneCall(const OneCall&) = delete;
  ~OneCall() { in_use_ = false; }

 private:
  std::atomic<bool>& in_use_;
};

}  // namespace sextant::c
