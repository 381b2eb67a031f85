#include "bench/blocks/layer.h"

#include <algorithm>

#include "sextant/base/error.h"
#include "sextant/base/random.h"

namespace sextant::bench {

std::vector<float> random_normal(int64_t count, double deviation, const std::string& stream) {
  const CounterRandom random(7, stream);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t n = 0; n < numbers.size(); ++n)
    numbers[n] = static_cast<float>(deviation * random.normal(n));
  return numbers;
}

ggml_tensor* weighted(ggml_context* g, ggml_tensor* scores, ggml_tensor* v, double scale) {
  scores = ggml_soft_max_ext(g, scores, nullptr, static_cast<float>(scale), 0);
  ggml_tensor* columns = ggml_cont(g, ggml_permute(g, v, 1, 2, 0, 3));  // [rows, head_dim, heads]
  return ggml_cont(g, ggml_permute(g, ggml_mul_mat(g, columns, scores), 0, 2, 1, 3));
}

ggml_tensor* shifted(ggml_context* g, ggml_tensor* product, int64_t rows) {
  return ggml_view_3d(g, product, rows, rows, product->ne[2], product->nb[1] - product->nb[0],
                      product->nb[2], static_cast<size_t>(rows - 1) * product->nb[0]);
}

Layer::Layer(const LayerSizes& of, const std::string& stream, bool biases)
    : sizes(of),
      x_(random_normal(of.rows * of.width(), 1, stream + "/x")),
      q_(random_layer(stream + "/q", biases)),
      k_(random_layer(stream + "/k", biases)),
      v_(random_layer(stream + "/v", biases)),
      out_(random_layer(stream + "/out", biases)) {}

ggml_tensor* Layer::made(ggml_tensor* result) {
  if (!result) fail(sextant_error());
  return result;
}

Linear Layer::random_layer(const std::string& stream, bool bias) const {
  const int64_t width = sizes.width();
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  Linear layer = {.weight = random_normal(width * width, deviation, stream + "/weight")};
  if (bias) layer.bias = random_normal(width, 0.1, stream + "/bias");
  return layer;
}

ggml_tensor* Layer::linear(GgmlGraph& graph, const Linear& layer, ggml_tensor* x) const {
  const int64_t width = sizes.width();
  ggml_tensor* weight = graph.constant(GGML_TYPE_F32, layer.weight.data(), width, width);
  ggml_tensor* y = ggml_mul_mat(graph.context(), weight, x);
  if (layer.bias.empty()) return y;
  return ggml_add(graph.context(), y, graph.constant(GGML_TYPE_F32, layer.bias.data(), width, 1));
}

ggml_tensor* Layer::build(GgmlGraph& graph, const std::string& way) {
  ggml_context* g = graph.context();
  ggml_tensor* x = graph.constant(GGML_TYPE_F32, x_.data(), sizes.width(), sizes.rows);
  const auto heads = [&](ggml_tensor* t) {
    return ggml_reshape_3d(g, t, sizes.head_dim, sizes.heads, sizes.rows);
  };
  const Projected p = {.q = heads(linear(graph, q_, x)),
                       .k = heads(linear(graph, k_, x)),
                       .v = heads(linear(graph, v_, x))};
  ggml_tensor* attended = ggml_reshape_2d(g, attention(graph, p, way), sizes.width(), sizes.rows);
  ggml_tensor* result = linear(graph, out_, attended);
  ggml_set_output(result);
  graph.add(result);
  return result;
}

std::vector<double> Layer::linear(const Linear& layer, const std::vector<double>& x) const {
  const auto width = static_cast<size_t>(sizes.width());
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size() / width; ++row)
    for (size_t to = 0; to < width; ++to) {
      double sum = layer.bias.empty() ? 0 : static_cast<double>(layer.bias[to]);
      for (size_t from = 0; from < width; ++from)
        sum += x[row * width + from] * static_cast<double>(layer.weight[to * width + from]);
      y[row * width + to] = sum;
    }
  return y;
}

std::vector<double> Layer::reference() const {
  const auto rows = static_cast<size_t>(sizes.rows), dim = static_cast<size_t>(sizes.head_dim),
             width = static_cast<size_t>(sizes.width());
  const std::vector<double> x(x_.begin(), x_.end());
  const std::vector<double> q = linear(q_, x), k = linear(k_, x), v = linear(v_, x);
  std::vector<double> attended(x.size()), scores(rows * rows);
  for (int64_t head = 0; head < sizes.heads; ++head) {
    const size_t first = static_cast<size_t>(head) * dim;
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < rows; ++j) {
        double sum = 0;
        for (size_t c = first; c < first + dim; ++c) sum += q[i * width + c] * k[j * width + c];
        scores[i * rows + j] = sum;
      }
    const double scale = add_positions(head, q, k, scores);
    for (size_t i = 0; i < rows; ++i) {
      double* of_row = scores.data() + i * rows;
      const double most = *std::max_element(of_row, of_row + rows);
      double sum = 0;
      for (size_t j = 0; j < rows; ++j) sum += of_row[j] = std::exp(scale * (of_row[j] - most));
      for (size_t j = 0; j < rows; ++j)
        for (size_t c = first; c < first + dim; ++c)
          attended[i * width + c] += of_row[j] / sum * v[j * width + c];
    }
  }
  return linear(out_, attended);
}

}  // namespace sextant::bench
