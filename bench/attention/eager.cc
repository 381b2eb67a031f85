#include "bench/attention/eager.h"

#include <ATen/ATen.h>

#include <limits>

namespace sextant::bench {

at::Tensor weighted(const at::Tensor& scores, const at::Tensor& mask, const at::Tensor& v) {
  return at::matmul(at::softmax(mask.defined() ? scores + mask : scores, -1), v);
}

at::Tensor mask_of(int64_t queries, int64_t keys,
                   const std::function<KeyRange(int64_t position)>& visible) {
  at::Tensor mask = at::full({queries, keys}, -std::numeric_limits<double>::infinity(), at::kFloat);
  bool all = true;
  for (int64_t i = 0; i < queries; ++i) {
    const KeyRange run = visible(keys - queries + i);
    const int64_t first = std::max<int64_t>(run.first, 0), last = std::min(run.last, keys);
    all = all && first == 0 && last == keys;
    mask[i].slice(0, first, last).zero_();
  }
  return all ? at::Tensor() : mask;
}

at::Tensor by_distance(int64_t queries, int64_t keys,
                       const std::function<int64_t(int64_t distance)>& f) {
  at::Tensor matrix = at::empty({queries, keys}, at::kLong);
  auto* to = matrix.data_ptr<int64_t>();
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) *to++ = f(keys - queries + i - j);
  }
  return matrix;
}

Angles angles(const Rotation& rotation, int64_t head_dim, int64_t first, int64_t count) {
  Angles result{at::ones({count, head_dim}), at::zeros({count, head_dim})};
  for (int64_t t = 0; t < count; ++t) {
    for (const Rotation::Pair& pair : rotation.pairs) {
      const CosSin angle = cos_sin(pair.frequency * (first + t));
      for (const int column : {pair.first, pair.second}) {
        result.cos.data_ptr<float>()[t * head_dim + column] = static_cast<float>(angle.cos);
        result.sin.data_ptr<float>()[t * head_dim + column] = static_cast<float>(angle.sin);
      }
    }
  }
  return result;
}

at::Tensor rotated(const at::Tensor& x, const Angles& angles) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return x * angles.cos + at::cat({-halves[1], halves[0]}, -1) * angles.sin;
}

at::Tensor rel_shift(const at::Tensor& x) {
  const int64_t batch = x.size(0), heads = x.size(1), rows = x.size(2), columns = x.size(3);
  const at::Tensor padded = at::cat({at::zeros({batch, heads, rows, 1}), x}, -1);
  return padded.view({batch, heads, columns + 1, rows})
      .narrow(2, 1, columns)
      .reshape({batch, heads, rows, columns});
}

}  // namespace sextant::bench
