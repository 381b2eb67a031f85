#include "tests/attention/random_score.h"

#include <algorithm>
#include <sstream>

namespace sextant {
namespace {
constexpr int64_t kAxisRows = 40;  // of the tables of axes
}

template <class T>
RandomScore<T>::RandomScore(const RandomOptions& options)
    : options_(options), random_(options.seed) {
  const RandomOptions& o = options_;
  score.q = drawn_as(o.dtypes.q, o.batch, o.heads, o.queries, o.columns);
  score.k = drawn_as(o.dtypes.k, o.batch, o.key_heads, o.keys, o.columns);
  score.v = drawn_as(o.dtypes.v, o.batch, o.key_heads, o.keys, o.value_columns);
  if (o.q_imag) score.q_imag = drawn_as(o.dtypes.q_imag, o.batch, o.heads, o.queries, o.columns);
  score.scale = 0.7;
  score.softcap = o.softcap;
  score.dropout = {.probability = o.dropout, .seed = o.seed};
  place();
  see();
  if (o.rotated) rotate();
  if (o.weight) score.weight = table(1, 1, score.row_at.weight);
  if (o.bias) score.bias = table(1, 2, score.row_at.bias);
  const int64_t table_columns = o.table_query > 0 ? o.table_query : o.columns;
  if (o.on_query)
    score.on_query =
        table(table_columns > 2 ? table_columns - 1 : table_columns, 1, score.row_at.on_query);
  if (o.on_key) score.on_key = table(o.columns, 1, score.row_at.on_key);
  if (o.on_value) score.on_value = table(o.value_columns, 1, score.row_at.on_value);
  if (o.query_bias) {
    // One column more than the diagonals need.
    const int64_t shared = o.shared_tables ? 1 : o.batch;
    score.query_bias = as_const(drawn(shared, o.heads, o.queries, score.diagonals.count + 1, 2));
    score.query_bias.batch = o.batch;
    if (shared == 1) score.query_bias.batch_stride = 0;
  }
  if (o.sink) {
    std::vector<T>& sink = memory_.emplace_back();
    for (int64_t h = 0; h < o.heads; ++h) sink.push_back(draw());
    score.sink = sink;
  }
  place_axes();
  const int64_t table_heads = o.shared_tables ? 1 : o.heads;
  if (o.axis_bias) score.axis_bias = as_const(drawn(1, table_heads, kAxisRows, 1, 1));
  if (o.axis_on_query)
    score.axis_on_query =
        as_const(drawn(1, table_heads, kAxisRows, table_columns > 1 ? table_columns - 1 : 1, 0.5));
  if (o.table_query > 0)
    score.table_query = as_const(drawn(o.batch, o.heads, o.queries, o.table_query, 0.5));
  if (o.query_sink) score.query_sink = as_const(drawn(o.batch, o.heads, o.queries, 1, 1));
  if (o.mask) {
    for (int64_t n = 0; n < o.batch * o.queries * o.keys; ++n) mask_.push_back(random_() % 4 != 0);
    score.mask = {mask_.data(),       o.batch, o.heads, o.queries, o.keys,
                  o.queries * o.keys, 0,       o.keys,  1};
  }
  d_out = drawn_as(o.dtypes.d_out, o.batch, o.heads, o.queries, o.value_columns);
  if (o.key_bias) {
    // Values far from 0, as sums over thousands of keys are.
    const int64_t entries = o.shared_tables ? 1 : o.batch, step = o.odd_strides ? 2 : 1;
    for (int64_t n = 0; n < entries * o.heads * o.keys * step; ++n)
      key_bias_.push_back(1000 + static_cast<double>(draw(2)));
    score.key_bias = {key_bias_.data(), o.batch, o.heads,
                      o.keys,           1,       entries == 1 ? 0 : o.heads * o.keys * step,
                      o.keys * step,    step,    1};
  }
}

template <class T>
T RandomScore<T>::draw(double scale) {
  return static_cast<T>(
      static_cast<float>(scale * std::normal_distribution<double>(0, 1)(random_)));
}

template <class T>
template <class Number>
View<Number> RandomScore<T>::laid_out(std::deque<std::vector<Number>>& all_memory, int64_t batch,
                                      int64_t heads, int64_t rows, int64_t columns, Number fill) {
  const bool odd = options_.odd_strides;
  const int64_t column = odd ? 2 : 1, row = columns * column + (odd ? 3 : 0);
  const int64_t head = rows * row + (odd ? 5 : 0), all = batch * heads * head;
  std::vector<Number>& memory = all_memory.emplace_back(static_cast<size_t>(all + 1), fill);
  if (!odd) return {memory.data(), batch, heads, rows, columns, heads * head, head, row, column};
  // Heads are the outer dimension, batch entries the inner one, and rows are in reverse order.
  Number* first = memory.data() + (rows > 0 ? (rows - 1) * row : 0);
  return {first, batch, heads, rows, columns, head, batch * head, -row, column};
}

template <class T>
View<T> RandomScore<T>::new_view(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                                 T fill) {
  return laid_out(memory_, batch, heads, rows, columns, fill);
}

template <class T>
AnyView<T> RandomScore<T>::new_view_of(DType dtype, int64_t batch, int64_t heads, int64_t rows,
                                       int64_t columns, T fill) {
  const auto narrow = static_cast<float>(fill);
  if (dtype == DType::kBfloat16)
    return laid_out(bfloat16_memory_, batch, heads, rows, columns, narrowed<Bfloat16>(narrow));
  if (dtype == DType::kFloat16)
    return laid_out(float16_memory_, batch, heads, rows, columns, narrowed<Float16>(narrow));
  return new_view(batch, heads, rows, columns, fill);
}

template <class T>
AnyView<const T> RandomScore<T>::drawn_as(DType dtype, int64_t batch, int64_t heads, int64_t rows,
                                          int64_t columns) {
  const HostAnyView view(new_view_of(options_.dtypes.computed_wide ? DType::kFloat32 : dtype, batch,
                                     heads, rows, columns));
  const auto rounded = [dtype](T x) {
    const auto number = static_cast<float>(x);
    if (dtype == DType::kBfloat16) return to_float(narrowed<Bfloat16>(number));
    return dtype == DType::kFloat16 ? to_float(narrowed<Float16>(number)) : number;
  };
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t c = 0; c < columns; ++c)
          view.set(b, h, i, c, static_cast<double>(rounded(draw())));
  return view;
}

template <class T>
View<T> RandomScore<T>::drawn(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                              double scale) {
  const HostView view(new_view(batch, heads, rows, columns));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t c = 0; c < columns; ++c) view(b, h, i, c) = draw(scale);
  return view;
}

template <class T>
View<const T> RandomScore<T>::table(int64_t columns, double scale,
                                    std::span<const int32_t>& row_at) {
  const int64_t clip = options_.clip, count = score.diagonals.count;
  if (clip > 0 && row_at_.empty())
    for (int64_t n = 0; n < count; ++n)
      row_at_.push_back(
          static_cast<int32_t>(std::clamp(score.diagonals.distance(n), -clip, clip) + clip));
  const int64_t rows = clip > 0 ? 2 * clip + 1 : count;
  const int64_t heads = options_.shared_tables ? 1 : options_.heads;
  row_at = row_at_;
  return as_const(drawn(1, heads, rows, columns, scale));
}

// If there are as many queries as keys, so there are in each packed sequence.
template <class T>
void RandomScore<T>::place() {
  const RandomOptions& o = options_;
  for (int n = 0; n < o.packed; ++n) {
    const auto cut = [&](int64_t rows, int at) { return rows * at / o.packed; };
    const int64_t query_row = cut(o.queries, n), queries = cut(o.queries, n + 1) - query_row;
    const int64_t key_row = cut(o.keys, n), keys = cut(o.keys, n + 1) - key_row;
    score.frames.push_back({.query_row = query_row,
                            .queries = queries,
                            .query_position = o.first_position + keys - queries,
                            .key_row = key_row,
                            .keys = keys,
                            .key_position = o.first_position});
  }
  int64_t farthest = 0, nearest = 0;
  for (const Frame& f : score.frames) {
    farthest = std::max(farthest, f.distance(f.query_row + f.queries - 1, f.key_row));
    nearest = std::min(nearest, f.distance(f.query_row, f.key_row + f.keys - 1));
  }
  score.diagonals = {.farthest = farthest, .count = farthest - nearest + 1};
}

// Rows of the tables are drawn for each distance; some distances have none.
template <class T>
void RandomScore<T>::place_axes() {
  const RandomOptions& o = options_;
  for (int n = 0; n < o.position_axes; ++n) {
    const bool by_entry = n == 2;
    const auto positions = [&](int64_t rows) {
      std::vector<int64_t>& at = times_.emplace_back();
      for (int64_t b = 0; b < (by_entry ? o.batch : 1); ++b)
        for (int64_t i = 0; i < rows; ++i)
          at.push_back(n == 0   ? i / o.axis_width
                       : n == 1 ? i % o.axis_width - 5
                                : static_cast<int64_t>(random_() % 90));
      at.push_back(0);
      return std::span<const int64_t>(at).first(at.size() - 1);
    };
    const auto queries = positions(o.queries), keys = positions(o.keys);
    const auto range = [](std::span<const int64_t> x) {
      return x.empty() ? std::pair<int64_t, int64_t>{0, 0}
                       : std::pair{*std::ranges::min_element(x), *std::ranges::max_element(x)};
    };
    const auto q = range(queries), k = range(keys);
    PositionAxis& axis = score.axes.emplace_back();
    axis = {.query_positions = queries.data(),
            .key_positions = keys.data(),
            .query_batch_stride = by_entry ? o.queries : 0,
            .key_batch_stride = by_entry ? o.keys : 0,
            .distances = {.farthest = q.second - k.first + n,
                          .count = q.second - k.first - (q.first - k.second) + 1 + 2 * n}};
    for (auto* map : {&axis.bias, &axis.on_query}) {
      std::vector<int32_t>& rows = axis_rows_.emplace_back();
      for (int64_t d = 0; d < axis.distances.count; ++d)
        rows.push_back(static_cast<int32_t>(random_() % (kAxisRows + 1)) - 1);
      *map = rows;
    }
  }
}

// The keys that a query sees, split into one range per sweep.
template <class T>
std::vector<KeyRange> RandomScore<T>::key_ranges_of(const Frame& frame, int64_t query) {
  const int64_t own = frame.key_row + (query - frame.query_row) + frame.keys - frame.queries;
  KeyRange seen = {frame.key_row, own + 1};
  switch (options_.key_ranges) {
    case RandomOptions::KeyRanges::kCausal:
      break;
    case RandomOptions::KeyRanges::kWhole:
      seen.last = frame.key_row + frame.keys;
      break;
    case RandomOptions::KeyRanges::kWindow:
      seen.first = own - 4;
      break;
    case RandomOptions::KeyRanges::kChunks:
      seen.first = own - (own % 5 + 5) % 5;
      break;
    case RandomOptions::KeyRanges::kRagged:
      seen.first = frame.key_row + static_cast<int64_t>(random_() % 7) - 1;
      seen.last = seen.first + static_cast<int64_t>(random_() % 40) - 3;
  }
  std::vector<KeyRange> cut;
  for (int n = 0; n < options_.sweeps; ++n) {
    const int64_t length = std::max<int64_t>(seen.last - seen.first, 0);
    cut.push_back({seen.first + length * n / options_.sweeps,
                   seen.first + length * (n + 1) / options_.sweeps});
  }
  return cut;
}

template <class T>
void RandomScore<T>::see() {
  score.sweeps.resize(static_cast<size_t>(options_.sweeps));
  for (Sweep& sweep : score.sweeps) {
    std::vector<KeyRange>& key_ranges =
        key_ranges_.emplace_back(static_cast<size_t>(options_.queries) + 1);
    sweep.key_ranges = key_ranges.data();
  }
  for (const Frame& frame : score.frames)
    for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i) {
      const std::vector<KeyRange> cut = key_ranges_of(frame, i);
      for (size_t n = 0; n < cut.size(); ++n) key_ranges_[n][static_cast<size_t>(i)] = cut[n];
    }
}

// Rotary positions advance by axis + 1 per row; each sweep has its own frequencies and offsets.
template <class T>
void RandomScore<T>::rotate() {
  const RandomOptions& o = options_;
  const auto rotary_positions = [&](bool query) {
    std::vector<int64_t>& of = times_.emplace_back();
    for (int axis = 0; axis < o.axes; ++axis)
      for (int64_t row = 0; row < (query ? o.queries : o.keys); ++row)
        of.push_back(o.first_position + row * (axis + 1) + (query ? o.keys - o.queries : 0));
    of.push_back(0);
    return of.data();
  };
  for (size_t n = 0; n < score.sweeps.size(); ++n) {
    Rotation& rotation = rotations_.emplace_back();
    rotation.gain = n == 0 ? 1 : 1.1;
    for (int f = 0; 2 * f + 1 < o.columns; ++f) {
      if (f % 5 == 4) continue;  // these columns are not rotated
      rotation.pairs.push_back({.first = f,
                                .second = static_cast<int>(o.columns) - 1 - f,
                                .frequency = {random_() >> 4, random_()},
                                .growth = o.grows ? -0.01 * (f + 1) : 0,
                                .axis = f % o.axes});
    }
    std::vector<Turns>& offset = offsets_.emplace_back();
    if (o.offset)
      for (size_t f = 0; f < rotation.pairs.size(); ++f) offset.push_back({random_(), random_()});
    score.sweeps[n].query = {&rotation, rotary_positions(true), 0, o.queries, 1, offset};
    score.sweeps[n].key = {&rotation, rotary_positions(false), 0, o.keys, 1, {}};
  }
}

template <class T>
Attended<T> RandomScore<T>::new_attended(T fill) {
  const RandomOptions& o = options_;
  return {new_view_of(o.dtypes.out, o.batch, o.heads, o.queries, o.value_columns, fill),
          new_view(o.batch, o.heads, o.queries, 1, fill)};
}

template <class T>
ScoreGrad<T> RandomScore<T>::new_grad(T fill) {
  const auto like = [&](const AnyView<const T>& of) {
    return of ? new_view(of.batch, of.heads, of.rows, of.columns, fill) : View<T>{};
  };
  const RandomOptions& o = options_;
  ScoreGrad<T> grad = {.q = like(score.q),
                       .k = like(score.k),
                       .v = like(score.v),
                       .q_imag = like(score.q_imag),
                       .weight = like(score.weight),
                       .bias = like(score.bias),
                       .on_query = like(score.on_query),
                       .on_key = like(score.on_key),
                       .on_value = like(score.on_value),
                       .axis_bias = like(score.axis_bias),
                       .axis_on_query = like(score.axis_on_query),
                       .table_query = like(score.table_query),
                       .query_sink = like(score.query_sink),
                       .query_bias = like(score.query_bias)};
  if (score.key_bias) grad.key_bias = new_view(o.batch, o.heads, o.keys, 1, fill);
  grad.sink = memory_.emplace_back(score.sink.size(), fill);
  return grad;
}

std::string to_string(const RandomOptions& o) {
  std::ostringstream text;
  text << "batch " << o.batch << " heads " << o.heads << "/" << o.key_heads << " rows " << o.queries
       << "x" << o.keys << " columns " << o.columns << "," << o.value_columns << " key_ranges "
       << static_cast<int>(o.key_ranges) << " sweeps " << o.sweeps << " packed " << o.packed
       << " first " << o.first_position;
  const std::pair<const char*, bool> flags[] = {{"rotated", o.rotated},
                                                {"offset", o.offset},
                                                {"grows", o.grows},
                                                {"weight", o.weight},
                                                {"bias", o.bias},
                                                {"on_query", o.on_query},
                                                {"on_key", o.on_key},
                                                {"on_value", o.on_value},
                                                {"query_bias", o.query_bias},
                                                {"key_bias", o.key_bias},
                                                {"shared", o.shared_tables},
                                                {"sink", o.sink},
                                                {"mask", o.mask},
                                                {"q_imag", o.q_imag},
                                                {"axis_bias", o.axis_bias},
                                                {"axis_on_query", o.axis_on_query},
                                                {"query_sink", o.query_sink},
                                                {"strides", o.odd_strides}};
  for (const auto& [name, on] : flags)
    if (on) text << " " << name;
  const std::pair<const char*, DType> dtypes[] = {
      {"q", o.dtypes.q},           {"k", o.dtypes.k},         {"v", o.dtypes.v},
      {"q_imag", o.dtypes.q_imag}, {"d_out", o.dtypes.d_out}, {"out", o.dtypes.out}};
  for (const auto& [name, dtype] : dtypes)
    if (dtype != DType::kFloat32)
      text << " " << name << (dtype == DType::kBfloat16 ? " bfloat16" : " float16");
  text << " position axes " << o.position_axes << " of " << o.axis_width << " r " << o.table_query;
  text << " softcap " << o.softcap << " dropout " << o.dropout << " axes " << o.axes << " clip "
       << o.clip << " seed " << o.seed;
  return text.str();
}

template class RandomScore<float>;
template class RandomScore<double>;

}  // namespace sextant
