#include "tests/attention/outcome.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

namespace sextant {
namespace {

// Adds the error of rounding the results to their format.
void add_rounding(DType dtype, const oracle::Tensor<double>& exact,
                  oracle::Tensor<double>& bounds) {
  if (dtype == DType::kFloat32) return;
  const double half_ulp = dtype == DType::kBfloat16 ? 0x1p-8 : 0x1p-11;
  const double least = dtype == DType::kBfloat16 ? 0x1p-134 : 0x1p-25;  // half the least subnormal
  for (size_t n = 0; n < bounds.data.size(); ++n)
    bounds.data[n] += half_ulp * (std::abs(exact.data[n]) + bounds.data[n]) + least;
}

void copy(const AnyView<float>& view, oracle::Tensor<double>& to) {
  const HostAnyView from(view);
  for (int64_t b = 0; b < to.batch; ++b)
    for (int64_t h = 0; h < to.heads; ++h)
      for (int64_t i = 0; i < to.rows; ++i)
        for (int64_t c = 0; c < to.columns; ++c)
          to(b, h, i, c) = static_cast<double>(from(b, h, i, c));
}

}  // namespace

double usual_scale(const RandomOptions& options) {
  return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(options.columns, 1)));
}

RandomOptions draw_options(uint64_t seed, int64_t most_rows) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  const auto one_in = [&](uint64_t n) { return random() % n == 0; };
  const auto one_of = [&](std::initializer_list<int64_t> list) {
    return *(list.begin() + up_to(list.size()));
  };
  const auto rows = [&] {
    return std::min(most_rows, one_of({0, 1, 2, 7, 8, 9, 16, 17, 40, 63, 65, 255, 256, 257, 300}));
  };
  RandomOptions o;
  o.seed = random();
  o.batch = 1 + up_to(2);
  o.key_heads = 1 + up_to(2);
  o.heads = o.key_heads * (1 + up_to(3));
  o.keys = rows();
  o.queries = one_in(2) ? o.keys : rows();
  o.columns = one_of({1, 2, 3, 8, 15, 16, 17, 32, 40, 64, 80});
  o.value_columns = one_in(3) ? one_of({1, 5, 16, 31, 64, 100}) : o.columns;
  o.key_ranges = static_cast<RandomOptions::KeyRanges>(up_to(5));
  o.sweeps = one_in(3) ? 1 + static_cast<int>(up_to(3)) : 1;
  o.packed = one_in(3) ? 1 + static_cast<int>(up_to(4)) : 1;
  o.first_position = one_of({0, 0, 1000000, -5});
  o.rotated = one_in(2);
  o.offset = one_in(3);
  o.axes = one_in(3) ? 2 : 1;
  o.weight = one_in(4);
  o.bias = one_in(3);
  o.on_query = one_in(3);
  o.on_key = one_in(3);
  o.on_value = one_in(3);
  o.shared_tables = one_in(2);
  o.clip = one_of({0, 3, 20});
  o.sink = one_in(4);
  o.mask = one_in(5);
  o.q_imag = one_in(5);
  o.odd_strides = one_in(4);
  // Growth increases without limit towards keys in the future.
  o.grows = one_in(4) && o.key_ranges == RandomOptions::KeyRanges::kCausal && o.queries <= o.keys;
  o.query_bias = one_in(4);
  o.key_bias = one_in(4);
  o.softcap = one_in(4) ? 1.5 : 0;
  o.dropout = one_in(4) ? 0.3 : 0;
  // Of axes of positions, of the queries that meet A, and of a sink for each query.
  o.position_axes = one_in(3) ? 1 + static_cast<int>(up_to(3)) : 0;
  o.axis_width = one_of({1, 3, 16, 24, 64});
  o.axis_bias = o.position_axes > 0 && one_in(2);
  o.axis_on_query = o.position_axes > 0 && one_in(2);
  o.table_query = (o.on_query || o.axis_on_query) && one_in(3) ? one_of({1, 7, 16, 33}) : 0;
  o.query_sink = !o.sink && one_in(4);
  return o;
}

RandomOptions draw_long_options(uint64_t seed, int64_t queries) {
  RandomOptions o = draw_options(seed);
  o.queries = queries;
  o.keys = 1100;
  o.columns = o.value_columns = 32;
  o.key_ranges =
      seed % 3 == 0 ? RandomOptions::KeyRanges::kWhole : RandomOptions::KeyRanges::kCausal;
  o.grows = false;
  return o;
}

RandomOptions draw_narrow_options(uint64_t seed, int64_t most_rows) {
  RandomOptions o = draw_options(seed, most_rows);
  std::mt19937_64 random(~seed);
  auto& f = o.dtypes;
  for (DType* dtype : {&f.q, &f.k, &f.v, &f.q_imag, &f.d_out, &f.out})
    *dtype = static_cast<DType>(random() % 3);
  return o;
}

Outcome::Outcome(const RandomOptions& options)
    : random(options), result(random.new_attended()), grad(random.new_grad()) {
  random.score.scale = usual_scale(options);
}

Expected::Expected(const RandomOptions& options, const Outcome& got) : same_(options) {
  same_.score.scale = usual_scale(options);
  exact_ = oracle::attend(same_.score, reference_backend());
  result_bounds_ = oracle::result_bounds(same_.score, exact_);
  add_rounding(options.dtypes.out, exact_.out, result_bounds_.out);
  // The backward pass takes `out` as it was rounded, so the reference must use the same.
  oracle::Result<double> given = exact_;
  if (options.dtypes.out != DType::kFloat32) copy(got.result.out, given.out);
  gradients_ = oracle::attend_backward(same_.score, given, same_.d_out, reference_backend());
  gradient_bounds_ = oracle::gradient_bounds(same_.score, given, same_.d_out);
}

std::vector<const oracle::Tensor<double>*> Expected::in_order(
    const oracle::Result<double>& result, const oracle::Gradients<double>& gradients) {
  std::vector<const oracle::Tensor<double>*> all = {&result.out, &result.lse};
  oracle::Gradients<double>::each(
      [&](const char*, auto member) { all.push_back(&(gradients.*member)); });
  return all;
}

std::vector<oracle::Worst> Expected::differences(const Outcome& got) const {
  const auto exact = in_order(exact_, gradients_);
  const auto bounds = in_order(result_bounds_, gradient_bounds_);
  std::vector<oracle::Worst> all;
  size_t n = 0;
  each_view(got, [&](const char* name, const AnyView<const float>& view) {
    const oracle::Tensor<double>& values = *exact[n];
    if (view && !values.data.empty())
      all.push_back(oracle::worst<float>(name, view, values.view(), bounds[n]->view()));
    ++n;
  });
  return all;
}

std::string different_bits(const AnyView<const float>& of_a, const AnyView<const float>& of_b,
                           const std::string& name) {
  const HostAnyView a(of_a), b(of_b);
  for (int64_t batch = 0; batch < a.batch; ++batch)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t c = 0; c < a.columns; ++c) {
          const float x = a(batch, h, i, c), y = b(batch, h, i, c);
          if (std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y)) continue;
          return name + "[" + std::to_string(batch) + ", " + std::to_string(h) + ", " +
                 std::to_string(i) + ", " + std::to_string(c) + "]: " + std::to_string(x) +
                 " and " + std::to_string(y);
        }
  return "";
}

std::string different_bits(const Outcome& a, const Outcome& b) {
  std::vector<AnyView<const float>> of_b;
  each_view(b, [&](const char*, const AnyView<const float>& view) { of_b.push_back(view); });
  std::string found;
  size_t n = 0;
  each_view(a, [&](const char* name, const AnyView<const float>& view) {
    if (found.empty()) found = different_bits(view, of_b[n], name);
    ++n;
  });
  return found;
}

}  // namespace sextant
