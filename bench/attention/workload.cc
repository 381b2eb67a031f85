#include "bench/attention/workload.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sextant/base/aligned_memory.h"

namespace sextant::bench {
namespace {

View<const float> read(const View<float>& x) {
  return {x.data,         x.batch,       x.heads,      x.rows,         x.columns,
          x.batch_stride, x.head_stride, x.row_stride, x.column_stride};
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return largest(a - b) / std::max(largest(b), 1e-30);
}

}  // namespace

View<float> view(const at::Tensor& x) {
  return {x.data_ptr<float>(), x.size(0),   x.size(1),   x.size(2),  x.size(3),
          x.stride(0),         x.stride(1), x.stride(2), x.stride(3)};
}

Workload::Workload(std::string name, const Sizes& sizes, int64_t queries, int64_t keys,
                   const std::function<KeyRange(int64_t position)>& visible)
    : name_(std::move(name)), dtype_(sizes.dtype) {
  const auto random = [&](int64_t heads, int64_t rows) {
    at::Tensor x = sizes.rows_first ? at::empty({sizes.batch, rows, heads, sizes.head_dim})
                                    : at::empty({sizes.batch, heads, rows, sizes.head_dim});
    if (sizes.as_cached) ask_for_huge_pages(x.data_ptr(), x.nbytes());
    x.normal_();
    return sizes.rows_first ? x.transpose(1, 2) : x;
  };
  const auto input = [&](int64_t heads, int64_t rows) {
    return random(heads, rows).to(sizes.dtype).to(at::kFloat).requires_grad_(true);
  };
  q = input(sizes.heads * sizes.group, queries);
  k = input(sizes.heads, keys);
  v = input(sizes.heads, keys);
  d_out = random(sizes.heads * sizes.group, queries);
  std::vector<KeyRange>& key_ranges = key_ranges_.emplace_back();
  for (int64_t i = 0; i < queries; ++i) key_ranges.push_back(visible(keys - queries + i));
  for (int64_t j = 0; j < keys; ++j) positions_.push_back(j);
  zeros_.resize(static_cast<size_t>(keys));
  score = {{.q = stored(q),
            .k = stored(k),
            .v = stored(v),
            .scale = 1 / std::sqrt(static_cast<double>(sizes.head_dim))},
           {.frames = {{.queries = queries, .query_position = keys - queries, .keys = keys}},
            .sweeps = {{.key_ranges = key_ranges.data()}},
            .diagonals = {.farthest = keys - 1, .count = queries + keys - 1}}};
  trained_ = {
      {q, {}, &ScoreGrad<float>::q}, {k, {}, &ScoreGrad<float>::k}, {v, {}, &ScoreGrad<float>::v}};
}

AnyView<const float> Workload::stored(const at::Tensor& x) {
  AnyView<const float> wide = view(x);
  if (dtype_ == at::kFloat) return wide;
  wide.data = narrow_.emplace_back(x.detach().to(dtype_)).data_ptr();
  wide.dtype = dtype_ == at::kBFloat16 ? DType::kBfloat16 : DType::kFloat16;
  return wide;
}

double Workload::pairs() const {
  double count = 0;
  for (const std::vector<KeyRange>& key_ranges : key_ranges_) {
    for (const KeyRange& range : key_ranges) {
      count += static_cast<double>(
          std::max<int64_t>(std::min(range.last, keys()) - std::max<int64_t>(range.first, 0), 0));
    }
  }
  return count * static_cast<double>(q.size(0) * q.size(1));
}

bool Workload::is_rotated() const {
  return std::ranges::any_of(score.sweeps, [](const Sweep& sweep) {
    return sweep.query.rotation != nullptr || sweep.key.rotation != nullptr;
  });
}

double Workload::least_bytes() const {
  const auto size = static_cast<double>(c10::elementSize(dtype_));
  return size * static_cast<double>(q.numel() + k.numel() + v.numel()) +
         static_cast<double>(sizeof(float)) * static_cast<double>(d_out.numel());
}

at::Tensor Workload::add_table(const TablePlace& place, int64_t heads, int64_t rows,
                               int64_t columns, const std::function<int64_t(int64_t distance)>& map,
                               bool trained) {
  at::Tensor table =
      tables_.emplace_back(at::randn({1, heads, rows, columns}).requires_grad_(trained));
  score.*place.rows = read(view(table));
  if (map) {
    std::vector<int32_t>& row_at = maps_.emplace_back();
    for (int64_t n = 0; n < score.diagonals.count; ++n) {
      row_at.push_back(static_cast<int32_t>(map(score.diagonals.distance(n))));
    }
    score.row_at.*place.row_at = row_at;
  }
  if (trained) trained_.push_back({table, {}, place.grad});
  return table;
}

at::Tensor Workload::add_query_bias() {
  at::Tensor bias = tables_.emplace_back(
      at::randn({q.size(0), q.size(1), queries(), score.diagonals.count}).requires_grad_());
  score.query_bias = read(view(bias));
  trained_.push_back({bias, {}, &ScoreGrad<float>::query_bias});
  return bias;
}

void Workload::rotate(size_t sweep, const Rotation& rotation) {
  const Rotation& kept = rotations_.emplace_back(rotation);
  score.sweeps[sweep].query = {.rotation = &kept,
                               .rotary_positions = positions_.data() + keys() - queries()};
  score.sweeps[sweep].key = {.rotation = &kept, .rotary_positions = positions_.data()};
}

const KeyRange* Workload::split(int64_t window) {
  std::vector<KeyRange>& near = key_ranges_.front();
  std::vector<KeyRange>& far = key_ranges_.emplace_back(near);
  for (int64_t i = 0; i < queries(); ++i) {
    const auto n = static_cast<size_t>(i);
    near[n].first = std::max<int64_t>(keys() - queries() + i - window + 1, 0);
    far[n].last = near[n].first;
  }
  return far.data();
}

void Workload::rectify(const Rotation& rotation, int64_t window) {
  const KeyRange* far = split(window);
  std::vector<Turns>& offset = offsets_.emplace_back();
  for (const Rotation::Pair& pair : rotation.pairs) offset.push_back(pair.frequency * window);
  rotate(0, rotation);
  score.sweeps.push_back({.query = {.rotation = &rotations_.back(),
                                    .rotary_positions = zeros_.data(),
                                    .offset = offset},
                          .key_ranges = far});
}

void Workload::leak(const Spectrum& spectrum, int64_t window, int64_t factor) {
  const KeyRange* far = split(window);
  rotate(0, rotation(spectrum));
  Spectrum slower = spectrum;
  std::vector<Turns>& offset = offsets_.emplace_back();
  for (Spectrum::Pair& pair : slower.pairs) {
    pair.frequency = pair.frequency / Real(static_cast<double>(factor));
    offset.push_back(turns(pair.frequency) * (window * (factor - 1)));
  }
  score.sweeps.push_back({.key_ranges = far});
  rotate(1, rotation(slower));
  score.sweeps[1].query.offset = offset;
}

void Workload::ours_forward(const Backend& backend, const Executor& executor) {
  if (!out_.defined()) {
    out_ = at::empty_like(d_out);
    lse_ = at::empty({q.size(0), q.size(1), q.size(2), 1});
  }
  attend<float>(score, {view(out_), view(lse_)}, backend, executor);
}

void Workload::ours_backward(const Backend& backend, const Executor& executor) {
  ScoreGrad<float> grad;
  for (Trained& trained : trained_) {
    if (!trained.gradient.defined()) trained.gradient = at::empty_like(trained.tensor);
    grad.*trained.place = view(trained.gradient);
  }
  attend_backward<float>(score, {read(view(out_)), read(view(lse_))}, read(view(d_out)), grad,
                         backend, executor);
}

void Workload::eager_forward() {
  if (!eager_) eager_ = eager();
  eager_out_ = eager_();
}

void Workload::eager_backward() {
  for (Trained& trained : trained_) trained.tensor.mutable_grad() = at::Tensor();
  eager_out_.backward(d_out);
}

void Workload::ggml_forward(int threads) {
  if (!ggml_) {
    GgmlAttention attention = ggml();
    attention.q = q.detach();
    attention.k = k.detach().to(dtype_);
    attention.v = v.detach().to(dtype_);
    attention.scale = score.scale;
    ggml_ = ggml_attention(attention, threads);
  }
  ggml_out_ = ggml_();
}

void Workload::clear() {
  out_ = lse_ = eager_out_ = ggml_out_ = at::Tensor();
  for (Trained& trained : trained_) {
    trained.gradient = at::Tensor();
    trained.tensor.mutable_grad() = at::Tensor();
  }
}

double Workload::disagreement() const {
  double worst = relative_difference(out_, eager_out_.detach());
  for (const Trained& trained : trained_) {
    if (!trained.gradient.defined() || !trained.tensor.grad().defined()) continue;
    worst = std::max(worst, relative_difference(trained.gradient, trained.tensor.grad()));
  }
  return worst;
}

double Workload::disagreement_with_ggml() const { return relative_difference(out_, ggml_out_); }

}  // namespace sextant::bench
