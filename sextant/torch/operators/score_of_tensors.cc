#include "sextant/torch/operators/score_of_tensors.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

Turns turns_at(const int64_t* halves) {
  return {static_cast<uint64_t>(halves[0]), static_cast<uint64_t>(halves[1])};
}

int narrow(const char* field, int64_t value) {
  if (value < 0 || value > std::numeric_limits<int>::max())
    fail("attend: pairs: " + std::string(field) +
         ": expected at least 0 (or -1 for no pair), but got " + std::to_string(value));
  return static_cast<int>(value);
}

// The pairs of one sweep; those that only fill up are left out, together with their offsets.
Rotation rotation_at(const FlatOperands& a, int64_t sweep) {
  Rotation rotation;
  const int64_t pairs = a.pairs.size(1);
  const int64_t* columns = a.pairs.data_ptr<int64_t>() + sweep * pairs * 3;
  const int64_t* speeds = a.speeds.data_ptr<int64_t>() + sweep * pairs * 2;
  for (int64_t f = 0; f < pairs; ++f, columns += 3, speeds += 2) {
    if (columns[0] == -1) continue;
    const double growth = a.growth.defined() ? a.growth.data_ptr<double>()[sweep * pairs + f] : 0;
    rotation.pairs.push_back({.first = narrow("first", columns[0]),
                              .second = narrow("second", columns[1]),
                              .speed = turns_at(speeds),
                              .growth = growth,
                              .axis = narrow("axis", columns[2])});
  }
  if (a.gains.defined()) rotation.gain = a.gains.data_ptr<double>()[sweep];
  return rotation;
}

std::vector<Turns> offsets_at(const FlatOperands& a, const at::Tensor& offsets, int64_t sweep) {
  std::vector<Turns> result;
  const int64_t pairs = a.pairs.size(1);
  for (int64_t f = sweep * pairs; f < (sweep + 1) * pairs; ++f)
    if (a.pairs.data_ptr<int64_t>()[f * 3] != -1)
      result.push_back(turns_at(offsets.data_ptr<int64_t>() + f * 2));
  return result;
}

// Whether it leaves every row as it is: all stand at time 0, and there is neither phase nor gain.
// Keys beyond ReRoPE's window do; turned by nothing they need no panels of their own.
bool turns_nothing(const Rotation& rotation, const at::Tensor& rotary_positions, int64_t sweep,
                   std::span<const Turns> offsets) {
  const auto is_zero = [](Turns phase) { return phase == Turns{}; };
  if (rotation.gain != 1 || !std::ranges::all_of(offsets, is_zero)) return false;
  for (const Rotation::Pair& pair : rotation.pairs)
    if (pair.growth != 0) return false;
  const auto time = rotary_positions.accessor<int64_t, 4>()[sweep];
  for (int64_t b = 0; b < rotary_positions.size(1); ++b)
    for (int64_t axis = 0; axis < rotary_positions.size(2); ++axis)
      for (int64_t row = 0; row < rotary_positions.size(3); ++row)
        if (time[b][axis][row] != 0) return false;
  return true;
}

void check_axes(const char* name, const Rotation& rotation, const at::Tensor& rotary_positions) {
  for (const Rotation::Pair& pair : rotation.pairs)
    if (pair.axis >= rotary_positions.size(2))
      fail("attend: " + std::string(name) + ": expected at least " + std::to_string(pair.axis + 1) +
           " axes, as pairs ask for, but got " + std::to_string(rotary_positions.size(2)));
}

// The stride of a dimension that may be shared.
int64_t shared_stride(const at::Tensor& x, int64_t dim) {
  return x.size(dim) == 1 ? 0 : x.stride(dim);
}

template <class T>
Table<T> table(const at::Tensor& rows, const at::Tensor& row_at,
               View<const T> (*view)(const at::Tensor&)) {
  Table<T> result;
  if (!rows.defined()) return result;
  result.rows = view(rows);
  if (row_at.defined())
    result.row_at = {row_at.data_ptr<int32_t>(), static_cast<size_t>(row_at.numel())};
  return result;
}

template <class T>
View<T> view_of(void* data, const at::Tensor& x) {
  return {.data = static_cast<T*>(data),
          .batch = x.size(0),
          .heads = x.size(1),
          .rows = x.size(2),
          .columns = x.size(3),
          .batch_stride = x.stride(0),
          .head_stride = x.stride(1),
          .row_stride = x.stride(2),
          .column_stride = x.stride(3)};
}

}  // namespace

template <class T>
View<T> view_4d(const at::Tensor& x) {
  return view_of<T>(x.data_ptr<std::remove_const_t<T>>(), x);
}

template <class T>
AnyView<T> any_view_4d(const at::Tensor& x) {
  if (x.scalar_type() == at::kBFloat16)
    return view_of<typename AnyView<T>::template Like<Bfloat16>>(x.data_ptr(), x);
  if (x.scalar_type() == at::kHalf)
    return view_of<typename AnyView<T>::template Like<Float16>>(x.data_ptr(), x);
  return view_4d<T>(x);
}

template <class T>
View<T> view_vectors(const at::Tensor& x) {
  return view_4d<T>(x.unsqueeze(0));
}

template <class T>
View<T> view_numbers(const at::Tensor& x) {
  return view_vectors<T>(x.unsqueeze(-1));
}

template <class T>
View<T> view_rows(const at::Tensor& x) {
  return view_4d<T>(x.unsqueeze(3));
}

template <class T>
ScoreOfTensors<T>::ScoreOfTensors(const FlatOperands& arguments) : arguments_(arguments) {
  FlatOperands& a = arguments_;
  for (at::Tensor* x :
       {&a.frames, &a.key_ranges, &a.pairs, &a.speeds, &a.growth, &a.gains, &a.query_offsets,
        &a.key_offsets, &a.frame_speeds, &a.frame_gains, &a.weight_rows, &a.bias_rows,
        &a.on_query_rows, &a.on_key_rows, &a.on_value_rows, &a.sink, &a.pages})
    if (x->defined()) *x = x->contiguous();
  for (at::Tensor* x :
       {&a.weight, &a.bias, &a.on_query, &a.on_key, &a.on_value, &a.sink, &a.query_bias})
    *x = to_float(*x);
  score_.q = any_view_4d<const T>(a.q);
  score_.k = any_view_4d<const T>(a.k);
  score_.v = any_view_4d<const T>(a.v);
  if (a.q_imag.defined()) score_.q_imag = any_view_4d<const T>(a.q_imag);
  score_.scale = a.scale;
  if (a.pages.defined())
    score_.pages = {.at = a.pages.data_ptr<int64_t>(),
                    .batch_stride = a.pages.size(0) == 1 ? 0 : a.pages.size(1),
                    .rows = a.key_rows};
  bind_frames();
  const int64_t sweeps = a.key_ranges.size(0);
  rotations_.reserve(sweeps);  // turns point into these two
  offsets_.reserve(2 * sweeps);
  for (int64_t n = 0; n < sweeps; ++n) bind_sweep(n);
  bind_tables();
  if (a.sink.defined()) score_.sink = {a.sink.data_ptr<T>(), static_cast<size_t>(a.sink.numel())};
  if (a.mask.defined()) bind_mask();
}

template <class T>
void ScoreOfTensors<T>::bind_frames() {
  const at::Tensor& frames = arguments_.frames;
  const int64_t* f = frames.data_ptr<int64_t>();
  for (int64_t n = 0; n < frames.size(0); ++n, f += 7)
    score_.frames.push_back({.batch = f[0],
                             .query_row = f[1],
                             .queries = f[2],
                             .query_position = f[3],
                             .key_row = f[4],
                             .keys = f[5],
                             .key_position = f[6]});
}

template <class T>
void ScoreOfTensors<T>::bind_rotations(int64_t sweep) {
  const FlatOperands& a = arguments_;
  std::vector<Rotation>& all = rotations_.emplace_back();
  all.push_back(rotation_at(a, sweep));
  check_axes("query_rotary_positions", all[0], a.query_rotary_positions);
  check_axes("key_rotary_positions", all[0], a.key_rotary_positions);
  if (!a.frame_speeds.defined() || all[0].pairs.empty()) return;
  all.resize(static_cast<size_t>(a.frames.size(0)), all[0]);
  const int64_t pairs = a.pairs.size(1);
  const int64_t* columns = a.pairs.data_ptr<int64_t>() + sweep * pairs * 3;
  for (size_t n = 0; n < all.size(); ++n) {
    const int64_t frame = sweep * a.frames.size(0) + static_cast<int64_t>(n);
    const int64_t* speeds = a.frame_speeds.data_ptr<int64_t>() + frame * pairs * 2;
    size_t at = 0;
    for (int64_t f = 0; f < pairs; ++f)
      if (columns[f * 3] != -1) all[n].pairs[at++].speed = turns_at(speeds + f * 2);
    all[n].gain = a.frame_gains.data_ptr<double>()[frame];
  }
}

template <class T>
void ScoreOfTensors<T>::bind_sweep(int64_t sweep) {
  const FlatOperands& a = arguments_;
  static_assert(sizeof(KeyRange) == 2 * sizeof(int64_t));
  const int64_t* key_ranges = a.key_ranges.data_ptr<int64_t>() + sweep * a.key_ranges.stride(0);
  Sweep bound = {.key_ranges = reinterpret_cast<const KeyRange*>(key_ranges),
                 .batch_stride = shared_stride(a.key_ranges, 1) / 2};
  if (a.pairs.defined()) {
    bind_rotations(sweep);
    bound.query = bind_turn(sweep, a.query_rotary_positions, a.query_offsets);
    bound.key = bind_turn(sweep, a.key_rotary_positions, a.key_offsets);
  }
  score_.sweeps.push_back(bound);
}

template <class T>
SideRotation ScoreOfTensors<T>::bind_turn(int64_t sweep, const at::Tensor& rotary_positions,
                                          const at::Tensor& offsets) {
  const std::vector<Rotation>& rotations = rotations_.back();
  if (rotations.empty() || rotations[0].pairs.empty()) return {};
  std::vector<Turns> phases;
  if (offsets.defined()) phases = offsets_at(arguments_, offsets, sweep);
  const bool by_frame = arguments_.frame_speeds.defined();
  if (!by_frame && turns_nothing(rotations[0], rotary_positions, sweep, phases)) return {};
  SideRotation turn = {
      .rotation = rotations.data(),
      .rotary_positions = rotary_positions.data_ptr<int64_t>() + sweep * rotary_positions.stride(0),
      .batch_stride = shared_stride(rotary_positions, 1),
      .axis_stride = rotary_positions.stride(2),
      .row_stride = rotary_positions.stride(3),
      .frame_stride = by_frame ? 1 : 0};
  if (offsets.defined()) {
    offsets_.push_back(std::move(phases));
    turn.offset = offsets_.back();
  }
  return turn;
}

// Diagonals are counted by the maps; without any map, by the rows.
template <class T>
void ScoreOfTensors<T>::bind_tables() {
  const FlatOperands& a = arguments_;
  score_.weight = table(a.weight, a.weight_rows, &view_numbers<const T>);
  score_.bias = table(a.bias, a.bias_rows, &view_numbers<const T>);
  score_.on_query = table(a.on_query, a.on_query_rows, &view_vectors<const T>);
  score_.on_key = table(a.on_key, a.on_key_rows, &view_vectors<const T>);
  score_.on_value = table(a.on_value, a.on_value_rows, &view_vectors<const T>);
  if (a.query_bias.defined())
    score_.query_bias =
        view_4d<const T>(a.query_bias.expand({score_.q.batch, score_.q.heads, score_.q.rows, -1}));
  if (a.key_bias.defined())
    score_.key_bias =
        view_rows<const double>(a.key_bias.expand({score_.q.batch, score_.q.heads, -1}));
  int64_t mapped = -1, rows = a.query_bias.defined() ? a.query_bias.size(3) : -1;
  for (const Table<T>* t :
       {&score_.weight, &score_.bias, &score_.on_query, &score_.on_key, &score_.on_value}) {
    if (!t->rows) continue;
    if (t->row_at.data())
      mapped = static_cast<int64_t>(t->row_at.size());
    else
      rows = rows < 0 ? t->rows.rows : std::min(rows, t->rows.rows);
  }
  score_.diagonals = {.farthest = a.farthest,
                      .count = std::max<int64_t>(mapped < 0 ? rows : mapped, 0)};
}

template <class T>
void ScoreOfTensors<T>::bind_mask() {
  const at::Tensor mask =
      arguments_.mask.expand({score_.q.batch, score_.q.heads, score_.q.rows, key_rows(score_)});
  score_.mask = {.data = reinterpret_cast<const uint8_t*>(mask.data_ptr<bool>()),
                 .batch = mask.size(0),
                 .heads = mask.size(1),
                 .rows = mask.size(2),
                 .columns = mask.size(3),
                 .batch_stride = mask.stride(0),
                 .head_stride = mask.stride(1),
                 .row_stride = mask.stride(2),
                 .column_stride = mask.stride(3)};
}

template View<float> view_4d(const at::Tensor&);
template View<double> view_4d(const at::Tensor&);
template View<const float> view_4d(const at::Tensor&);
template View<const double> view_4d(const at::Tensor&);
template AnyView<float> any_view_4d(const at::Tensor&);
template AnyView<double> any_view_4d(const at::Tensor&);
template AnyView<const float> any_view_4d(const at::Tensor&);
template AnyView<const double> any_view_4d(const at::Tensor&);
template View<float> view_vectors(const at::Tensor&);
template View<double> view_vectors(const at::Tensor&);
template View<float> view_numbers(const at::Tensor&);
template View<double> view_numbers(const at::Tensor&);
template View<float> view_rows(const at::Tensor&);
template View<double> view_rows(const at::Tensor&);
template View<const float> view_rows(const at::Tensor&);
template View<const double> view_rows(const at::Tensor&);
template class ScoreOfTensors<float>;
template class ScoreOfTensors<double>;

}  // namespace sextant
