#include "sextant/attention/cuda/launcher.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "sextant/attention/dropout_words.h"
#include "sextant/attention/operand_list.h"
#include "sextant/base/error.h"
#include "sextant/base/random.h"

namespace sextant::cuda {
namespace {

Stored stored_as(DType dtype) {
  switch (dtype) {
    case DType::kBfloat16:
      return Stored::kBfloat16;
    case DType::kFloat16:
      return Stored::kFloat16;
    case DType::kFloat64:
      return Stored::kFloat64;
    case DType::kFloat32:
      break;
  }
  return Stored::kFloat32;
}

int64_t size_of(Stored type) {
  switch (type) {
    case Stored::kFloat64:
      return 8;
    case Stored::kFloat32:
      return 4;
    case Stored::kInt8:
      return 1;
    default:
      return 2;
  }
}

// Whether rows of this type can be copied by 16 bytes.
bool is_aligned(const Rows& x) {
  const int64_t size = size_of(x.type);
  const auto whole = [&](int64_t elements) { return elements * size % 16 == 0; };
  return x.column_stride == 1 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0 &&
         whole(x.row_stride) && whole(x.head_stride) && whole(x.batch_stride) && whole(x.columns);
}

template <class T>
Rows packed_rows(T* data, Stored type, int64_t heads, int64_t rows, int32_t columns,
                 int64_t row_stride) {
  Rows to = {.data = data,
             .batch_stride = heads * rows * row_stride,
             .head_stride = rows * row_stride,
             .row_stride = row_stride,
             .columns = columns,
             .type = type};
  to.aligned = is_aligned(to) ? 1 : 0;
  return to;
}

bool rotates(const SideRotation& side) { return side.rotation && !side.rotation->pairs.empty(); }

// The kernels of each pass, which one instance must be able to serve.
constexpr Kernel kForwardKernels[] = {Kernel::kForward};
constexpr Kernel kBackwardKernels[] = {Kernel::kQueryGradients,  Kernel::kKeyGradients,
                                       Kernel::kValueGradients,  Kernel::kTableGradients,
                                       Kernel::kScalarGradients, Kernel::kAxisGradients};

}  // namespace

template <class AView>
Rows rows_of(const AView& view) {
  if (!view) return {};
  Rows to = {.data = const_cast<void*>(static_cast<const void*>(view.data)),
             .batch_stride = view.batch_stride,
             .head_stride = view.head_stride,
             .row_stride = view.row_stride,
             .column_stride = view.column_stride,
             .columns = static_cast<int32_t>(view.columns)};
  using Element = std::remove_const_t<std::remove_pointer_t<decltype(view.data)>>;
  if constexpr (std::is_void_v<Element>)
    to.type = stored_as(view.dtype);
  else if constexpr (std::is_same_v<Element, double>)
    to.type = Stored::kFloat64;
  else if constexpr (sizeof(Element) == 1)
    to.type = Stored::kInt8;
  to.aligned = is_aligned(to) ? 1 : 0;
  return to;
}

template Rows rows_of(const AnyView<const float>&);
template Rows rows_of(const AnyView<float>&);
template Rows rows_of(const View<float>&);
template Rows rows_of(const View<const float>&);

// The rows of a table; all heads may share one.
static Rows rows_of_table(View<const float> table) {
  if (table.heads == 1) table.head_stride = 0;
  return rows_of(table);
}

Launcher::Launcher(const Machine& machine, const Operands<float>& operands,
                   const PreparedPlan& plan, PassOf pass, void* stream)
    : driver_(*machine.driver),
      operands_(operands),
      shape_(plan.shape()),
      own_(device_plan(plan)),
      guard_(own_.lock()),
      stream_(stream) {
  const Plan& host = plan.plan();
  a_.batch = static_cast<int32_t>(shape_.batch);
  a_.heads = static_cast<int32_t>(shape_.heads);
  a_.key_heads = static_cast<int32_t>(shape_.key_heads);
  a_.group = a_.key_heads == 0 ? 1 : a_.heads / a_.key_heads;
  a_.queries = static_cast<int32_t>(shape_.queries);
  a_.keys = static_cast<int32_t>(shape_.keys);
  a_.diagonals = static_cast<int32_t>(host.diagonals.count);
  a_.depth = static_cast<int32_t>(shape_.columns);
  a_.depth16 = round_up(shape_.columns, 16);
  a_.width = static_cast<int32_t>(shape_.value_columns);
  a_.width16 = round_up(shape_.value_columns, 16);
  a_.sweeps = static_cast<int32_t>(host.sweeps.size());
  a_.scale = static_cast<float>(operands.scale);
  a_.softcap = static_cast<float>(operands.softcap);
  for (const Sweep& sweep : host.sweeps) {
    rotates_queries_ = rotates_queries_ || rotates(sweep.query);
    rotates_keys_ = rotates_keys_ || rotates(sweep.key);
  }
  set_tables();
  set_axes(host);
  set_dropout();
  choose_instance(machine, host, pass);
  a_.visible = own_.visible(stream);
  in_pages_ = static_cast<bool>(host.pages);
  if (in_pages_) {
    key_pages_.at = own_.page_table(stream);
    key_pages_.batch_stride = (host.pages.rows + shape_.page_rows - 1) / shape_.page_rows;
    key_pages_.page_rows = shape_.page_rows;
    value_pages_ = key_pages_;
    const auto set_int8 = [](const Int8Pages<float>& from, PageTable& to) {
      if (!from) return;
      to.int8 = rows_of(from.numbers);
      to.scale = rows_of(from.scale);
      if (from.scale.rows == 1) to.scale.row_stride = 0;
      if (from.scale.columns == 1) to.scale.column_stride = 0;
    };
    set_int8(operands.k_int8, key_pages_);
    set_int8(operands.v_int8, value_pages_);
  }
  set_origins();
}

void Launcher::set_tables() {
  int which = 0;
  each_table([&](auto operand) {
    const auto table = static_cast<TableOf>(which++);
    if (operand.of(operands_))
      operand.of(a_) = {rows_of_table(operand.of(operands_)), own_.row_map(table, stream_)};
  });
  a_.query_bias = rows_of(operands_.query_bias);
  a_.key_bias = rows_of(operands_.key_bias);
  a_.mask = rows_of(operands_.mask);
  a_.sink = operands_.sink.empty() ? nullptr : operands_.sink.data();
  a_.query_sink = rows_of(operands_.query_sink);
  a_.table_query = rows_of(operands_.table_query);
  a_.q_raw = a_.table_query ? a_.table_query : rows_of(operands_.q);
}

void Launcher::set_axes(const Plan& plan) {
  a_.axis_bias = rows_of_table(operands_.axis_bias);
  a_.axis_on_query = rows_of_table(operands_.axis_on_query);
  if (!a_.axis_bias && !a_.axis_on_query) return;
  a_.axes = own_.axes(stream_);
  a_.axis_count = static_cast<int32_t>(plan.axes.size());
  const int64_t rows = operands_.axis_on_query.rows, queries = a_.queries;
  a_.axis_table_rows = static_cast<int32_t>(rows);
  a_.axis_products = memory<float>(int64_t{a_.batch} * a_.heads * queries * rows);
  launch_rows(Kernel::kAxisProducts, a_, queries * rows, a_.heads, a_.batch);
}

void Launcher::set_dropout() {
  const Dropout& from = operands_.dropout;
  if (!from) return;
  const PhiloxKey key = philox_key(from.seed);
  a_.dropout = {.on = 1,
                .least_kept = least_kept(from),
                .key_low = key[0],
                .key_high = key[1],
                .kept_factor = static_cast<float>(from.kept_factor()),
                .first_batch = from.first_batch,
                .first_query = from.first_query,
                .first_key = from.first_key};
}

void Launcher::choose_instance(const Machine& machine, const Plan& plan, PassOf pass) {
  const Operands<float>& o = operands_;
  const DType type = o.q.dtype;
  bool narrow = machine.products == Products::kOfOperands && type != DType::kFloat32 &&
                o.k.dtype == type && o.v.dtype == type && !o.k_int8 &&
                (!o.q_imag || o.q_imag.dtype == type);
  for (const Sweep& sweep : plan.sweeps)
    if (rotates(sweep.query))
      for (const Rotation::Pair& pair : sweep.query.rotation->pairs)
        narrow = narrow && pair.growth == 0;  // its factors may be far from 1
  instance_.type = narrow ? stored_as(type) : Stored::kFloat32;

  const int32_t of_r = a_.on_query.rows ? a_.table_query.columns : 0;  // in tiles
  expect_at_most("table_query.columns", kMostColumns, of_r);
  const int32_t most_columns = std::max({a_.depth, a_.width, of_r});
  int32_t most = 0, least = 0;
  expect_success("shared memory", driver_.most_shared_bytes(&most));
  const std::span<const Kernel> kernels = pass == PassOf::kForward
                                              ? std::span<const Kernel>(kForwardKernels)
                                              : std::span<const Kernel>(kBackwardKernels);
  for (const int32_t width : {64, 128, 256})
    for (const int32_t tile : {64, 32, 16}) {
      instance_.width = width;
      instance_.tile = tile;
      if (width < most_columns || !driver_.has(kernels[0], instance_)) continue;
      int32_t bytes = 0;
      for (const Kernel kernel : kernels)
        bytes = std::max(bytes, shared_tiles(kernel, instance_, holds(kernel, ~0)).bytes);
      if (bytes <= most) return;
      least = bytes;
    }
  fail("cuda: columns: expected sizes of q, v and table_query whose tiles fit into the device's " +
       std::to_string(most) + " bytes of shared memory, but got " + std::to_string(a_.depth) +
       ", " + std::to_string(a_.width) + " and " + std::to_string(of_r) + ", which need " +
       std::to_string(least));
}

Holds Launcher::holds(Kernel kernel, int32_t what) const {
  const bool on_query = static_cast<bool>(a_.on_query.rows);
  const bool on_key = static_cast<bool>(a_.on_key.rows);
  const bool on_value = static_cast<bool>(a_.on_value.rows) && kernel != Kernel::kValueGradients;
  const bool forward = kernel == Kernel::kForward;
  const bool of_keys = kernel == Kernel::kKeyGradients;
  const bool of_axes = kernel == Kernel::kAxisGradients && a_.axes;
  Holds own = {.q_raw = on_query && (rotates_queries_ || a_.table_query),
               .q_imag = static_cast<bool>(operands_.q_imag),
               .k_raw = on_key && rotates_keys_,
               .v = kernel != Kernel::kValueGradients,
               .d_out = !forward,
               .table = on_query || on_key || on_value,
               .by_diagonal = static_cast<bool>(a_.weight.rows) || static_cast<bool>(a_.bias.rows),
               .skew = on_query || on_key || (on_value && !forward)};
  own.skew = own.skew || (of_keys && (what & kBias) != 0) || of_axes;
  own.axis_rows = of_axes;
  own.saved = a_.weight.rows || a_.softcap > 0 || operands_.q_imag || a_.query_bias ||
              a_.key_bias || a_.axes || a_.table_query;
  own.weights =
      forward || of_keys || kernel == Kernel::kValueGradients || kernel == Kernel::kQueryGradients;
  own.skewed = forward ? on_value : (what & kTable) != 0 && (of_keys ? on_key : on_query);
  return own;
}

void Launcher::launch_rows(Kernel kernel, const Arguments& arguments, int64_t elements,
                           int64_t heads, int64_t batch) {
  if (elements <= 0 || heads == 0 || batch == 0) return;
  constexpr int32_t kThreads = 128;
  const bool sums = kernel == Kernel::kSinkGradient;
  const Grid grid = {.x = sums ? 1 : (elements + kThreads - 1) / kThreads,
                     .y = static_cast<int32_t>(heads),
                     .z = static_cast<int32_t>(batch),
                     .threads = kThreads,
                     .shared_bytes = sums ? kThreads * static_cast<int32_t>(sizeof(double)) : 0};
  expect_success("launch", driver_.launch(kernel, {}, &grid, &arguments, stream_));
}

void Launcher::launch_tiles(Kernel kernel, Arguments arguments, int64_t x, int64_t heads,
                            int64_t z) {
  if (x == 0 || heads == 0 || z == 0) return;
  arguments.shared = shared_tiles(kernel, instance_, holds(kernel, arguments.what));
  const Grid grid = {.x = x,
                     .y = static_cast<int32_t>(heads),
                     .z = static_cast<int32_t>(z),
                     .threads = 2 * instance_.tile,
                     .shared_bytes = arguments.shared.bytes};
  expect_success("launch", driver_.launch(kernel, instance_, &grid, &arguments, stream_));
}

void Launcher::fill(const Rows& to, int64_t batch, int64_t heads, int64_t first, int64_t rows,
                    float value) {
  Arguments a;
  a.to = to;
  a.first_row = first;
  a.rows = rows;
  a.value = value;
  launch_rows(Kernel::kFill, a, rows * to.columns, heads, batch);
}

Rows Launcher::zeros(int64_t batch, int64_t heads, int64_t rows, int32_t columns) {
  float* const data = memory<float>(batch * heads * rows * columns);
  const Rows sums = packed_rows(data, Stored::kFloat32, heads, rows, columns, columns);
  fill(sums, batch, heads, 0, rows, 0);
  return sums;
}

Rows Launcher::rotated(const Rows& from, const DeviceSide* side, int64_t heads,
                       int64_t rows_of_head, int64_t first, int64_t rows, const PageTable& pages) {
  if (!side && pages.page_rows == 0) return from;
  const int32_t columns16 = round_up(from.columns, 16);
  const int64_t elements = a_.batch * heads * rows_of_head * columns16;
  const Rows to = packed_rows(
      pass_memory_.emplace_back(driver_, stream_, elements * size_of(instance_.type)).as<void>(),
      instance_.type, heads, rows_of_head, columns16, columns16);
  Arguments a;
  a.from = from;
  a.to = to;
  a.pages = pages;
  a.first_row = first;
  a.rows = rows;
  set_angles(side, a);
  launch_rows(Kernel::kRotate, a, rows * columns16, heads, a_.batch);
  return to;
}

void Launcher::set_angles(const DeviceSide* side, Arguments& a) {
  if (!side) return;
  a.channels = side->channels.as<const Channel>();
  a.angles = side->angles.as<float>();
  a.angles_of_batch = side->angles_of_batch;
  a.pair_count = side->pair_count;
}

void Launcher::enter(const DevicePass& pass) {
  pass_memory_.clear();
  const PassPlan& host = pass.host;
  a_.frames = pass.frames.as<const FrameRows>();
  a_.frame_count = static_cast<int32_t>(host.frames.size());
  a_.query_tiles = pass.query_tiles.as<const QueryTile>();
  a_.spans = pass.spans.as<const KeySpan>();
  a_.key_tiles = pass.key_tiles.as<const KeyTile>();
  a_.parts = pass.parts.as<const KeyTilePart>();
  const Rows q = rows_of(operands_.q), k = rows_of(operands_.k), v = rows_of(operands_.v);
  const int64_t first_key = in_pages_ ? 0 : host.first_key;
  const int64_t keys = in_pages_ ? a_.keys : host.keys;
  a_.k_raw = rotated(k, nullptr, a_.key_heads, a_.keys, first_key, keys, key_pages_);
  a_.v = rotated(v, nullptr, a_.key_heads, a_.keys, first_key, keys, value_pages_);
  for (int32_t n = 0; n < a_.sweeps; ++n) {
    const auto at = static_cast<size_t>(n);
    const DeviceSide* const queries = pass.queries[at].get();
    const DeviceSide* const of_keys = pass.keys[at].get();
    SweepRows& sweep = a_.sweep[n];
    sweep = {};
    for (int32_t m = 0; m < n; ++m) {  // sweeps with equal rotations share rows
      if (pass.queries[static_cast<size_t>(m)].get() == queries) {
        sweep.q = a_.sweep[m].q;
        sweep.q_imag = a_.sweep[m].q_imag;
      }
      if (pass.keys[static_cast<size_t>(m)].get() == of_keys) sweep.k = a_.sweep[m].k;
    }
    if (!sweep.q) {
      sweep.q = rotated(q, queries, a_.heads, a_.queries, host.first_query, host.queries, {});
      if (operands_.q_imag)
        sweep.q_imag = rotated(rows_of(operands_.q_imag), queries, a_.heads, a_.queries,
                               host.first_query, host.queries, {});
    }
    if (!sweep.k)
      sweep.k = of_keys ? rotated(k, of_keys, a_.key_heads, a_.keys, first_key, keys, key_pages_)
                        : a_.k_raw;
    if (queries && queries->grows) sweep.growth = queries->channels.as<const Channel>();
    if (queries) sweep.query_positions = queries->times;
    if (of_keys) sweep.key_positions = of_keys->times;
  }
}

void Launcher::add_sums(const Rows& sums, const DeviceSide* side, const Rows& to, int64_t heads,
                        int64_t first, int64_t rows) {
  Arguments a;
  a.from = sums;
  a.from.columns = to.columns;
  a.to = to;
  a.first_row = first;
  a.rows = rows;
  a.accumulate = 1;
  a.backward = 1;
  set_angles(side, a);
  launch_rows(Kernel::kRotate, a, rows * to.columns, heads, a_.batch);
}

void Launcher::copy(const Rows& from, const Rows& to, int64_t heads, int64_t rows) {
  Arguments a;
  a.from = from;
  a.to = to;
  a.rows = rows;
  launch_rows(Kernel::kRotate, a, rows * to.columns, heads, a_.batch);
}

void Launcher::set_origins() {
  if (!a_.key_bias) return;
  auto* const origins = memory<double>(int64_t{a_.batch} * a_.heads * a_.queries);
  a_.origins = origins;
  launch_rows(Kernel::kOrigins, a_, a_.queries, a_.heads, a_.batch);
}

}  // namespace sextant::cuda
