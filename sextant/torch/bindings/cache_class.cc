// torch.classes.sextant.KVCache: one layer's keys and values of growing sequences
// (sextant/cache/kv_cache.h), for Python. A batch is a list of sequences, one for each entry.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cache/cache_file.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/files/read_file.h"
#include "sextant/torch/bindings/call_arguments.h"
#include "sextant/torch/bindings/check_call.h"
#include "sextant/torch/bindings/method_cache.h"
#include "sextant/torch/cached_attention.h"
#include "sextant/torch/device_cache.h"
#include "sextant/torch/methods/shared/rotary_plan.h"
#include "sextant/torch/operators/views.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

using Sizes = std::vector<int64_t>;

void check_tensor(const char* name, const at::Tensor& x, int64_t batch, c10::Device device) {
  const std::string what = "kv cache: " + std::string(name) + ": expected ";
  if (x.dim() != 4 || x.size(0) != batch)
    fail(what + "[" + std::to_string(batch) +
         " (sequences), heads, rows, columns], but got a tensor of " + std::to_string(x.dim()) +
         " dimensions" + (x.dim() > 0 ? " and batch " + std::to_string(x.size(0)) : ""));
  if (wide_type(x) != at::kFloat || x.device() != device)
    fail(what + "float32, bfloat16 or float16 on " + device.str() + ", as the cache, but got " +
         at::toString(x.scalar_type()) + " on " + x.device().str());
}

void check_constant(const char* name, const at::Tensor& x) {
  if (x.requires_grad() && at::GradMode::is_enabled())
    fail("kv cache: " + std::string(name) +
         ": expected a tensor without gradient, as a cache keeps values only (torch.no_grad()), "
         "but got one that requires it");
}

// Reshapes [batch, heads, rows, columns] to one entry, [1, heads, batch * rows, columns], and back.
at::Tensor joined(const at::Tensor& x) {
  if (x.size(0) == 1) return x;
  return x.transpose(0, 1).reshape({1, x.size(1), x.size(0) * x.size(2), x.size(3)});
}
at::Tensor parted(const at::Tensor& x, int64_t batch) {
  if (batch == 1) return x.contiguous();
  return x.view({x.size(1), batch, x.size(2) / batch, x.size(3)}).transpose(0, 1).contiguous();
}

// The names of the types that a cache can have, in the order of DType, and int8, whose last pages
// are bfloat16.
constexpr std::array<const char*, 3> kDTypeNames = {"float32", "bfloat16", "float16"};
constexpr const char* kInt8 = "int8";

std::string name_of(const KvCacheShape& shape) {
  return shape.int8 ? kInt8 : kDTypeNames[static_cast<size_t>(shape.dtype)];
}

KvCacheShape with_type(KvCacheShape shape, const std::string& name) {
  shape.int8 = name == kInt8;
  const auto* const found = std::ranges::find(kDTypeNames, shape.int8 ? "bfloat16" : name);
  if (found == kDTypeNames.end())
    fail("kv cache: dtype: expected float32, bfloat16, float16 or int8, but got " + name);
  shape.dtype = static_cast<DType>(found - kDTypeNames.begin());
  return shape;
}

// The pages of a cache on a GPU; null: its memory is the host's.
std::unique_ptr<TensorPages> pages_on(const std::string& name, const KvCacheShape& shape) {
  const c10::Device device(name);
  if (device.is_cpu()) return nullptr;
  if (!device.is_cuda()) fail("kv cache: device: expected cpu or cuda, but got " + name);
  if (shape.int8)
    fail("kv cache: dtype: expected float32, bfloat16 or float16 on " + name + ", but got int8");
  return std::make_unique<TensorPages>(shape, device);
}

class KvCacheClass final : public torch::CustomClassHolder {
 public:
  KvCacheClass(int64_t key_heads, int64_t key_columns, int64_t value_columns, int64_t page_rows,
               const std::string& dtype, const std::string& device)
      : KvCacheClass(with_type({.key_heads = key_heads,
                                .key_columns = key_columns,
                                .value_columns = value_columns,
                                .page_rows = page_rows},
                               dtype),
                     device) {}

  Sizes shape() const {
    const KvCacheShape& s = cache_.shape();
    return {s.key_heads, s.key_columns, s.value_columns, s.page_rows};
  }
  std::string dtype() const { return name_of(cache_.shape()); }
  std::string device() const { return place().str(); }
  int64_t pages_in_use() const { return cache_.pages_in_use(); }
  bool holds(int64_t sequence) const { return cache_.holds(sequence); }
  int64_t rows(int64_t sequence) const { return cache_.rows(sequence); }
  int64_t first_position(int64_t sequence) const { return cache_.first_position(sequence); }

  int64_t add(int64_t first_position, const c10::optional<std::string>& rotated_keys) {
    if (!rotated_keys) return cache_.add(first_position);
    expect_host("rotated_keys: expected none");
    return cache_.add(first_position, rotation_of(*rotated_keys));
  }
  int64_t fork(int64_t sequence, int64_t rows) { return cache_.fork(sequence, rows); }
  void remove(int64_t sequence) { cache_.remove(sequence); }
  void truncate(int64_t sequence, int64_t rows) { cache_.truncate(sequence, rows); }
  void drop(int64_t sequence, int64_t first, int64_t count) {
    if (pages_) return sextant::drop(cache_, *pages_, sequence, first, count);
    cache_.drop(sequence, first, count);
  }
  void move_to(int64_t sequence, int64_t first_position) {
    cache_.rerotate(sequence, first_position);
  }
  void rerotate(int64_t sequence, const std::string& rotated_keys) {
    cache_.rerotate(sequence, rotation_of(rotated_keys));
  }

  // If it throws, the cache is unchanged.
  void append(const at::Tensor& k, const at::Tensor& v, const Sizes& sequences) {
    check_rows(k, v, sequences);
    ProvisionalRows appended(cache_, sequences);
    append_rows(k, v, sequences);
    appended.keep();
  }

  std::tuple<at::Tensor, at::Tensor> read(int64_t sequence) const {
    const KvCacheShape& s = cache_.shape();
    const int64_t rows = cache_.rows(sequence);
    if (pages_) return sextant::read(cache_, *pages_, sequence, 0, rows);
    const at::ScalarType type = s.int8 ? at::kFloat : scalar_type(s.dtype);
    const at::Tensor k = at::empty({1, s.key_heads, rows, s.key_columns}, type);
    const at::Tensor v = at::empty({1, s.key_heads, rows, s.value_columns}, type);
    cache_.read(sequence, 0, any_view_4d<float>(k), any_view_4d<float>(v));
    return {k, v};
  }

  // The frames of sequences that grow by `rows` rows, and of their queries, int64 [sequences, 7].
  at::Tensor frames(const Sizes& sequences, int64_t rows) const {
    return sextant::frames(continued(cache_, growing(sequences, rows)));
  }
  // The pages of sequences, for encodings that are written in Python. rotates: whether these rotate
  // keys, which must then be stored unrotated. Returns keys, values, the pages of each sequence and
  // the pages of integers (CachePages).
  std::tuple<at::Tensor, at::Tensor, at::Tensor, std::vector<at::Tensor>> pages(
      const Sizes& sequences, bool rotates) const {
    for (const int64_t sequence : sequences)
      if (rotates && cache_.rotated_keys(sequence))
        fail("kv cache: sequence " + std::to_string(sequence) +
             ": expected plain keys, as the encoding rotates them, but it has rotated keys");
    const CachePages found = pages_of(cache_, growing(sequences, 0));
    return {found.keys, found.values, found.table, found.int8};
  }
  // Copies of the keys and values of the same sequences, [1, key heads, rows of their pages,
  // columns].
  std::tuple<at::Tensor, at::Tensor> gathered_rows(const Sizes& sequences) const {
    const auto [k, v, table, int8] = pages(sequences, /*rotates=*/false);
    const int64_t rows = table.numel() * cache_.shape().page_rows;
    return {gathered({k, int8, true}, table, rows), gathered({v, int8, false}, table, rows)};
  }

  void save(int64_t sequence, const std::string& path) const {
    if (pages_) return save_cache(host_copy(cache_, *pages_, sequence), 0, path);
    save_cache(cache_, sequence, path);
  }
  int64_t load(const std::string& path) {
    if (!pages_) return load_cache(path, cache_);
    KvCache host(cache_.shape());
    return add_copy(cache_, *pages_, host, load_cache(path, host));
  }

  // Appends k and v [sequences, key heads, rows, columns] and attends with their queries
  // [sequences, heads, rows, key_columns] over all keys of each sequence. scale, sink, window
  // ([left, right] or empty) and softcap are those of CallTerms. rotated_keys: sequences without
  // rows will store keys as the method rotates them. If it throws, the cache is unchanged.
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Sizes& sequences, const std::string& method, const Sizes& shape,
                    const std::string& options, const std::vector<at::Tensor>& parameters,
                    int64_t layer, c10::optional<double> scale,
                    const c10::optional<at::Tensor>& sink, const Sizes& window, double softcap,
                    bool rotated_keys) {
    check_tensor("q", q, static_cast<int64_t>(sequences.size()), place());
    if (rotated_keys) expect_host("rotated_keys: expected False");
    const auto named = cached_method(method, shape, options);
    check_call({method, shape}, *named, q, k, v, layer);
    check_rows(k, v, sequences);
    if (q.size(2) != k.size(2))
      fail("kv cache: q: expected the " + std::to_string(k.size(2)) + " rows of k, but got " +
           std::to_string(q.size(2)));
    CallTerms terms;
    if (scale) terms.scale = *scale;
    if (sink) terms.sink = *sink;
    terms.window = window_of(window);
    terms.softcap = softcap;
    if (sequences.empty()) return at::empty({0, q.size(1), q.size(2), v.size(3)}, q.options());
    const std::vector<SequenceGrowth> grown = growing(sequences, k.size(2));
    Layout layout = continued(cache_, grown);
    layout.plans = named.plans;
    const at::Tensor queries = joined(q);
    ProvisionalRows appended(cache_, sequences);
    if (rotated_keys) set_rotated_keys(*named, queries, sequences, layout, layer, parameters);
    append_rows(k, v, sequences);
    at::Tensor out = parted(attend_cached(*named, queries, cache_, grown, layout, layer, parameters,
                                          terms, rotated_keys),
                            q.size(0));
    appended.keep();
    return out;
  }

 private:
  KvCacheClass(const KvCacheShape& shape, const std::string& device)
      : pages_(pages_on(device, shape)),
        cache_(pages_ ? KvCache(shape, *pages_) : KvCache(shape)) {}

  c10::Device place() const { return pages_ ? pages_->keys().device() : c10::Device(at::kCPU); }
  void expect_host(const std::string& expected) const {
    if (pages_) fail("kv cache: " + expected + ", as the cache is on " + device());
  }

  static std::vector<SequenceGrowth> growing(const Sizes& sequences, int64_t rows) {
    std::vector<SequenceGrowth> all;
    all.reserve(sequences.size());
    for (const int64_t sequence : sequences) all.push_back({sequence, rows});
    return all;
  }

  // Appends rows that have been checked by check_rows().
  void append_rows(const at::Tensor& k, const at::Tensor& v, const Sizes& sequences) {
    if (pages_) return sextant::append(cache_, *pages_, k, v, sequences);
    const auto keys = any_view_4d<const float>(k), values = any_view_4d<const float>(v);
    const auto count = static_cast<int64_t>(sequences.size());
    for (int64_t b = 0; b < count; ++b) cache_.check_appended(keys, values, b);
    for (int64_t b = 0; b < count; ++b)
      cache_.append(sequences[static_cast<size_t>(b)], keys, values, b);
  }

  // Lets the sequences that have no rows store keys as the method rotates them.
  void set_rotated_keys(const Method& method, const at::Tensor& q, const Sizes& sequences,
                        const Layout& layout, int64_t layer,
                        const std::vector<at::Tensor>& parameters) {
    const auto is_new = [&](int64_t sequence) {
      return cache_.rows(sequence) == 0 && !cache_.rotated_keys(sequence);
    };
    if (std::ranges::none_of(sequences, is_new)) return;
    const std::vector<Rotation> rotations =
        rotations_for(method, q, cache_, layout, layer, parameters);
    for (size_t n = 0; n < sequences.size(); ++n)
      if (is_new(sequences[n])) cache_.set_rotated_keys(sequences[n], rotations[n]);
  }

  Rotation rotation_of(const std::string& rope_options) const {
    return rotation(
        rope_spectrum("kv cache: rotated_keys", rope_options, cache_.shape().key_columns));
  }

  void check_rows(const at::Tensor& k, const at::Tensor& v, const Sizes& sequences) const {
    for (const auto& [name, x] : {std::pair{"k", &k}, {"v", &v}}) {
      check_tensor(name, *x, static_cast<int64_t>(sequences.size()), place());
      check_constant(name, *x);
    }
    const KvCacheShape& s = cache_.shape();
    const auto expect = [](const char* field, int64_t got, int64_t expected) {
      if (got != expected)
        fail("kv cache: " + std::string(field) + ": expected " + std::to_string(expected) +
             ", but got " + std::to_string(got));
    };
    expect("k.heads", k.size(1), s.key_heads);
    expect("v.heads", v.size(1), s.key_heads);
    expect("v.rows", v.size(2), k.size(2));
    expect("k.columns", k.size(3), s.key_columns);
    expect("v.columns", v.size(3), s.value_columns);
    for (size_t n = 0; n < sequences.size(); ++n) {
      cache_.rows(sequences[n]);  // or throws
      if (std::find(sequences.begin(), sequences.begin() + n, sequences[n]) !=
          sequences.begin() + n)
        fail("kv cache: sequences: expected each once, but got " + std::to_string(sequences[n]) +
             " twice");
    }
  }

  std::unique_ptr<TensorPages> pages_;  // null: on the CPU
  KvCache cache_;
};

// The sizes and the dtype of a cache that can load this file.
std::tuple<Sizes, std::string> saved_cache_shape(const std::string& path) {
  const KvCacheShape shape = cache_file_shape(read_file(path));
  return {{shape.key_heads, shape.key_columns, shape.value_columns, shape.page_rows},
          name_of(shape)};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  library.class_<KvCacheClass>("KVCache")
      .def(torch::init<int64_t, int64_t, int64_t, int64_t, std::string, std::string>())
      .def("shape", &KvCacheClass::shape)
      .def("dtype", &KvCacheClass::dtype)
      .def("device", &KvCacheClass::device)
      .def("pages_in_use", &KvCacheClass::pages_in_use)
      .def("holds", &KvCacheClass::holds)
      .def("rows", &KvCacheClass::rows)
      .def("first_position", &KvCacheClass::first_position)
      .def("add", &KvCacheClass::add)
      .def("fork", &KvCacheClass::fork)
      .def("remove", &KvCacheClass::remove)
      .def("truncate", &KvCacheClass::truncate)
      .def("drop", &KvCacheClass::drop)
      .def("move_to", &KvCacheClass::move_to)
      .def("rerotate", &KvCacheClass::rerotate)
      .def("append", &KvCacheClass::append)
      .def("frames", &KvCacheClass::frames)
      .def("read", &KvCacheClass::read)
      .def("pages", &KvCacheClass::pages)
      .def("gathered_rows", &KvCacheClass::gathered_rows)
      .def("save", &KvCacheClass::save)
      .def("load", &KvCacheClass::load)
      .def("attend", &KvCacheClass::attend);
  library.def("saved_cache_shape(str path) -> (int[], str)", saved_cache_shape);
}

}  // namespace sextant
