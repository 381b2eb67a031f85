// A KvCache keeps the tables of pages on the host; the pages themselves are tensors on the device,
// which index operations of torch write and read.
#include "sextant/torch/device_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operators/views.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

void check_fits(const char* name, const at::Tensor& x, at::ScalarType type) {
  const bool narrows = type == at::kHalf ? x.scalar_type() != at::kHalf
                                         : type == at::kBFloat16 && x.scalar_type() == at::kFloat;
  if (!narrows || x.numel() == 0) return;
  if (at::isinf(x.to(type)).logical_and(at::isfinite(x)).any().item<bool>())
    fail("kv cache: " + std::string(name) + ": expected finite numbers that are finite in " +
         at::toString(type) + ", but got a larger one");
}

// The pages and the rows in them of rows [first[n], first[n] + rows) of the n-th sequence, int64
// [2, rows of all] on the device.
at::Tensor places(const KvCache& cache, std::span<const int64_t> sequences,
                  const std::vector<int64_t>& first, int64_t rows, c10::Device device) {
  const auto count = static_cast<int64_t>(sequences.size()) * rows;
  at::Tensor all = at::empty({2, count}, at::kLong);
  int64_t* const to = all.data_ptr<int64_t>();
  for (size_t n = 0; n < sequences.size(); ++n)
    for (int64_t row = 0; row < rows; ++row) {
      const StoredRow stored = cache.stored(sequences[n], first[n] + row);
      const int64_t at = static_cast<int64_t>(n) * rows + row;
      to[at] = stored.batch;
      to[count + at] = stored.row;
    }
  return all.to(device);
}

// Writes x [batch, heads, rows, columns] to the places of its rows.
void write(const at::Tensor& pages, const at::Tensor& at, const at::Tensor& x) {
  if (x.numel() == 0) return;
  pages.transpose(1, 2).index_put_(
      {at.select(0, 0), at.select(0, 1)},
      x.transpose(1, 2).reshape({-1, x.size(1), x.size(3)}).to(pages.scalar_type()));
}

// The rows at `at`, [1, heads, rows, columns].
at::Tensor rows_at(const at::Tensor& pages, const at::Tensor& at) {
  return pages.transpose(1, 2)
      .index({at.select(0, 0), at.select(0, 1)})
      .transpose(0, 1)
      .contiguous()
      .unsqueeze(0);
}

}  // namespace

TensorPages::TensorPages(const KvCacheShape& shape, c10::Device device) {
  const auto none = [&](int64_t columns) {
    return at::empty({0, shape.key_heads, shape.page_rows, columns},
                     at::TensorOptions(scalar_type(shape.dtype)).device(device));
  };
  keys_ = none(shape.key_columns);
  values_ = none(shape.value_columns);
}

// Rows that are not written yet are zeros, as in the host's memory.
void TensorPages::resize(int64_t pages) {
  const int64_t old = keys_.size(0);
  if (pages <= old) return;
  const auto grown = [&](const at::Tensor& x) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[0] = std::max(pages, old + old / 2) - old;
    return at::cat({x, at::zeros(sizes, x.options())});
  };
  const at::Tensor keys = grown(keys_), values = grown(values_);
  keys_ = keys;
  values_ = values;
}

void TensorPages::copy_page(int64_t from, int64_t to) {
  for (const at::Tensor* x : {&keys_, &values_}) x->select(0, to).copy_(x->select(0, from));
}

void append(KvCache& cache, TensorPages& pages, const at::Tensor& k, const at::Tensor& v,
            std::span<const int64_t> sequences) {
  const at::NoGradGuard no_gradients;
  check_fits("k", k, pages.keys().scalar_type());
  check_fits("v", v, pages.values().scalar_type());
  ProvisionalRows appended(cache, sequences);
  std::vector<int64_t> before;
  for (const int64_t sequence : sequences) {
    before.push_back(cache.rows(sequence));
    cache.grow(sequence, k.size(2));
  }
  const at::Tensor at = places(cache, sequences, before, k.size(2), pages.keys().device());
  write(pages.keys(), at, k);
  write(pages.values(), at, v);
  appended.keep();
}

std::pair<at::Tensor, at::Tensor> read(const KvCache& cache, const TensorPages& pages,
                                       int64_t sequence, int64_t first, int64_t count) {
  const at::Tensor at = places(cache, {&sequence, 1}, {first}, count, pages.keys().device());
  return {rows_at(pages.keys(), at), rows_at(pages.values(), at)};
}

// The rows that remain are written to a fork, which then takes the sequence's place.
void drop(KvCache& cache, TensorPages& pages, int64_t sequence, int64_t first, int64_t count) {
  const int64_t rows = cache.rows(sequence);
  if (first < 0 || count < 0 || count > rows - first)
    fail("kv cache: drop: first, count: expected a range of its " + std::to_string(rows) +
         " rows, but got " + std::to_string(first) + ", " + std::to_string(count));
  if (count == 0) return;
  const int64_t kept = cache.fork(sequence, first);
  try {
    const auto [k, v] = read(cache, pages, sequence, first + count, rows - first - count);
    append(cache, pages, k, v, {&kept, 1});
    cache.take(sequence, kept);
  } catch (...) {
    cache.remove(kept);
    throw;
  }
}

KvCache host_copy(const KvCache& cache, const TensorPages& pages, int64_t sequence) {
  const auto [k, v] = read(cache, pages, sequence, 0, cache.rows(sequence));
  KvCache host(cache.shape());
  host.append(host.add(cache.first_position(sequence)), any_view_4d<const float>(k.to(at::kCPU)),
              any_view_4d<const float>(v.to(at::kCPU)));
  return host;
}

int64_t add_copy(KvCache& cache, TensorPages& pages, const KvCache& host, int64_t sequence) {
  if (host.rotated_keys(sequence))
    fail("kv cache: rotated_keys: expected unrotated keys, as the cache is on " +
         pages.keys().device().str() + ", but the file's are rotated");
  const KvCacheShape& shape = host.shape();
  const int64_t rows = host.rows(sequence);
  const auto made = [&](int64_t columns) {
    return at::empty({1, shape.key_heads, rows, columns}, scalar_type(shape.dtype));
  };
  const at::Tensor k = made(shape.key_columns), v = made(shape.value_columns);
  host.read(sequence, 0, any_view_4d<float>(k), any_view_4d<float>(v));
  const int64_t added = cache.add(host.first_position(sequence));
  try {
    append(cache, pages, k.to(pages.keys().device()), v.to(pages.keys().device()), {&added, 1});
  } catch (...) {
    cache.remove(added);
    throw;
  }
  return added;
}

}  // namespace sextant
