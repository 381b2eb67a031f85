// A C interface to one call of the cuda backend with addresses of device memory, so that bench/
// cuda.py measures it beside other software without a library that was built for a torch.
//
// Functions return null, or 0, if they fail; sextant_shim_error() then has the message. A handle
// counts the memory that the backend takes from the driver.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/cuda/backend.h"
#include "sextant/attention/layouts.h"
#include "sextant/position/row_map.h"
#include "tests/attention/cuda/fiber_backend.h"

namespace sextant::bench {
namespace {

thread_local std::string error;

// ---- memory ----

// The driver, with counts of the memory in use.
const cuda::Driver* driver = nullptr;
struct {
  std::mutex mutex;
  std::unordered_map<void*, size_t> blocks;
  int64_t now = 0, most = 0;
} memory;

const char* allocate(size_t bytes, void* stream, void** to) {
  const char* const message = driver->allocate(bytes, stream, to);
  const std::lock_guard lock(memory.mutex);
  if (!message) {
    memory.blocks[*to] = bytes;
    memory.now += static_cast<int64_t>(bytes);
    memory.most = std::max(memory.most, memory.now);
  }
  return message;
}
const char* release(void* block, void* stream) {
  {
    const std::lock_guard lock(memory.mutex);
    memory.now -= static_cast<int64_t>(memory.blocks[block]);
    memory.blocks.erase(block);
  }
  return driver->release(block, stream);
}

cuda::Machine counted_machine() {
  static const cuda::Driver counted = [] {
    cuda::Driver made = *driver;
    made.allocate = allocate;
    made.release = release;
    return made;
  }();
  return {&counted};
}

const Backend& backend() {
  static const Backend made =
      cuda::backend_over<counted_machine>("counted", "with counts of memory", Device::kCuda);
  return made;
}

// ---- calls ----

constexpr int64_t kShawClip = 16;      // the best value of the paper
constexpr int64_t kDebertaClip = 256;  // the value of released models

// The row of a table for each diagonal; empty: a row for each diagonal.
std::vector<int32_t> rows_of(std::string_view kind, const Diagonals& diagonals) {
  if (kind == "t5")
    return row_map(diagonals,
                   T5Buckets({.buckets = 32, .max_distance = 128, .bidirectional = false}));
  if (kind == "shaw") return clipped_row_map(diagonals, kShawClip, RowOrder::kKeyMinusQuery);
  if (kind == "deberta")
    return row_map(diagonals, LinearRows{.rows = 2 * kDebertaClip,
                                         .zero_distance = kDebertaClip,
                                         .order = RowOrder::kQueryMinusKey});
  return {};
}

// The tables of a kind of position encoding.
struct Tables {
  bool bias = false, on_query = false, on_key = false, on_value = false;
};
Tables tables_of(std::string_view kind) {
  if (kind == "none" || kind == "full" || kind == "rope") return {};
  if (kind == "alibi" || kind == "t5") return {.bias = true};
  if (kind == "shaw") return {.on_query = true, .on_value = true};
  if (kind == "transformer-xl") return {.on_query = true};
  if (kind == "deberta") return {.on_query = true, .on_key = true};
  fail(
      "shim: kind: expected none, full, rope, alibi, t5, shaw, transformer-xl or deberta, but "
      "got " +
      std::string(kind));
}

struct Sizes {
  int64_t batch, heads, key_heads, queries, keys, head_dim;
};

// A plan with its tables' row maps, prepared for the counted backend.
class Call {
 public:
  Call(std::string_view kind, const Sizes& sizes, DType dtype)
      : sizes_(sizes), dtype_(dtype), tables_(tables_of(kind)) {
    std::optional<Rotation> rotary_rotation;
    if (kind == "rope") rotary_rotation = rotation(rotary({.dim = sizes.head_dim}));
    const SequenceRows rows = {.queries = sizes.queries, .keys = sizes.keys};
    layout_.emplace(kind == "deberta" || kind == "full" ? bidirectional(rows)
                                                        : causal(rows, rotary_rotation));
    row_at_ = rows_of(kind, layout_->diagonals());
    table_rows_ = row_at_.empty() ? layout_->diagonals().count
                                  : 1 + *std::max_element(row_at_.begin(), row_at_.end());
    // A table may have rows that no distance of these sizes has.
    if (kind == "t5") table_rows_ = 32;
    if (kind == "shaw") table_rows_ = 2 * kShawClip + 1;
    if (kind == "deberta") table_rows_ = 2 * kDebertaClip;
    // Shaw's vectors are shared by the heads.
    table_heads_ = kind == "shaw" ? 1 : sizes.heads;
    Plan plan = layout_->plan();
    plan.row_at = {.bias = row_at_, .on_query = row_at_, .on_key = row_at_, .on_value = row_at_};
    const PlanShape shape = {.batch = sizes.batch,
                             .heads = sizes.heads,
                             .key_heads = sizes.key_heads,
                             .queries = sizes.queries,
                             .keys = sizes.keys,
                             .columns = sizes.head_dim,
                             .value_columns = sizes.head_dim,
                             .key_table = tables_.on_key};
    plan_.emplace(std::move(plan), shape, backend());
  }

  int64_t table_rows() const { return table_rows_; }
  int64_t table_heads() const { return table_heads_; }

  // In the order of the addresses of sextant_shim_forward().
  Operands<float> operands(void* const* at, double scale) const {
    Operands<float> o;
    o.q = stored<const float>(at[0], sizes_.heads, sizes_.queries);
    o.k = stored<const float>(at[1], sizes_.key_heads, sizes_.keys);
    o.v = stored<const float>(at[2], sizes_.key_heads, sizes_.keys);
    o.scale = scale;
    if (tables_.bias) o.bias = table(at[5], 1);
    if (tables_.on_query) o.on_query = table(at[6], sizes_.head_dim);
    if (tables_.on_key) o.on_key = table(at[7], sizes_.head_dim);
    if (tables_.on_value) o.on_value = table(at[8], sizes_.head_dim);
    return o;
  }
  Attended<float> result(void* const* at) const {
    return {
        stored<float>(at[3], sizes_.heads, sizes_.queries),
        contiguous(static_cast<float*>(at[4]), {sizes_.batch, sizes_.heads, sizes_.queries, 1})};
  }
  // The same order, for gradients; at[3] is that of the output, at[4] is not used.
  ScoreGrad<float> gradients(void* const* at) const {
    ScoreGrad<float> g;
    g.q = stored<float>(at[0], sizes_.heads, sizes_.queries);
    g.k = stored<float>(at[1], sizes_.key_heads, sizes_.keys);
    g.v = stored<float>(at[2], sizes_.key_heads, sizes_.keys);
    if (tables_.bias) g.bias = table(at[5], 1);
    if (tables_.on_query) g.on_query = table(at[6], sizes_.head_dim);
    if (tables_.on_key) g.on_key = table(at[7], sizes_.head_dim);
    if (tables_.on_value) g.on_value = table(at[8], sizes_.head_dim);
    return g;
  }
  AnyView<const float> d_out(void* const* at) const {
    return stored<const float>(at[3], sizes_.heads, sizes_.queries);
  }
  const PreparedPlan& plan() const { return *plan_; }

 private:
  template <class T>
  AnyView<T> stored(void* data, int64_t heads, int64_t rows) const {
    AnyView<T> view =
        contiguous(static_cast<T*>(data), {sizes_.batch, heads, rows, sizes_.head_dim});
    view.dtype = dtype_;
    return view;
  }
  View<float> table(void* data, int64_t columns) const {
    return contiguous(static_cast<float*>(data), {1, table_heads_, table_rows_, columns});
  }

  Sizes sizes_;
  DType dtype_;
  Tables tables_;
  std::optional<OwnedPlan> layout_;
  std::vector<int32_t> row_at_;
  int64_t table_rows_ = 0, table_heads_ = 0;
  std::optional<PreparedPlan> plan_;
};

// Calls f and returns its result; a value of 0, with `error`, if it throws.
template <class F>
auto guarded(F&& f) -> decltype(f()) {
  try {
    error.clear();
    return f();
  } catch (const std::exception& exception) {
    error = exception.what();
    return {};
  }
}

DType dtype_named(std::string_view name) {
  if (name == "bfloat16") return DType::kBfloat16;
  if (name == "float16") return DType::kFloat16;
  if (name == "float32") return DType::kFloat32;
  fail("shim: dtype: expected bfloat16, float16 or float32, but got " + std::string(name));
}

Context on(void* stream) {
  Context context;
  context.stream = stream;
  return context;
}

}  // namespace
}  // namespace sextant::bench

using sextant::bench::Call;

extern "C" {

const char* sextant_shim_error() { return sextant::bench::error.c_str(); }

// Chooses the driver, before any call: 1, or 0 if there is no GPU.
int sextant_shim_begin(int fibers) {
  return sextant::bench::guarded([&] {
    sextant::bench::driver =
        fibers != 0 ? &sextant::cuda::fiber_driver() : &sextant::cuda::library_driver();
    return 1;
  });
}

// sizes: batch, heads, key heads, queries, keys, head size.
void* sextant_shim_call(const char* kind, const int64_t* sizes, const char* dtype) {
  return sextant::bench::guarded([&]() -> void* {
    return new Call(kind, {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]},
                    sextant::bench::dtype_named(dtype));
  });
}
void sextant_shim_free(void* call) { delete static_cast<Call*>(call); }

int64_t sextant_shim_table_rows(void* call) { return static_cast<Call*>(call)->table_rows(); }
int64_t sextant_shim_table_heads(void* call) { return static_cast<Call*>(call)->table_heads(); }

// addresses: q, k, v, out, lse (float32), and tables of float32 [heads, rows, columns]: bias, on
// queries, on keys, on values; null: there is no such table. Returns 1 if it succeeds.
int sextant_shim_forward(void* call, void* const* addresses, double scale, void* stream) {
  return sextant::bench::guarded([&] {
    const Call& c = *static_cast<const Call*>(call);
    sextant::attend(c.operands(addresses, scale), c.plan(), c.result(addresses),
                    sextant::bench::on(stream));
    return 1;
  });
}
// gradients: those of q, k, v, the given one of out, null, and those of the tables.
int sextant_shim_backward(void* call, void* const* addresses, void* const* gradients, double scale,
                          void* stream) {
  return sextant::bench::guarded([&] {
    const Call& c = *static_cast<const Call*>(call);
    const sextant::Attended<float> result = c.result(addresses);
    const sextant::Attended<const float> given = {result.out, result.lse};
    sextant::attend_backward(c.operands(addresses, scale), c.plan(), given, c.d_out(gradients),
                             c.gradients(gradients), sextant::bench::on(stream));
    return 1;
  });
}

// Begins to count the peak of the backend's memory anew and returns that so far.
int64_t sextant_shim_peak() {
  const std::lock_guard lock(sextant::bench::memory.mutex);
  const int64_t most = sextant::bench::memory.most;
  sextant::bench::memory.most = sextant::bench::memory.now;
  return most;
}
}
