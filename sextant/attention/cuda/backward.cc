// The backward pass of a call: each kernel adds to sums in float32, which are rotated back and
// rounded to the type of the gradient once.
#include <algorithm>

#include "sextant/attention/cuda/launcher.h"

namespace sextant::cuda {
namespace {

// The sum of all contributions to a gradient, in float32: the gradient itself, or memory from which
// it is rounded once.
class Total {
 public:
  Total(Launcher& launcher, const AnyView<float>& to, int64_t heads, int64_t rows)
      : launcher_(launcher), heads_(heads), rows_(rows) {
    if (!to) return;
    to_ = rows_of(to);
    if (to_.type == Stored::kFloat32) {
      sums_ = to_;
      launcher.fill(to_, launcher.arguments().batch, heads, 0, rows, 0);
    } else {
      sums_ = launcher.zeros(launcher.arguments().batch, heads, rows, to_.columns);
    }
  }
  explicit operator bool() const { return static_cast<bool>(to_); }
  const Rows& rows() const { return sums_; }
  void finish() {
    if (to_ && to_.type != Stored::kFloat32) launcher_.copy(sums_, to_, heads_, rows_);
  }

 private:
  Launcher& launcher_;
  int64_t heads_, rows_;
  Rows to_, sums_;
};

// The most blocks for each head that sum the gradients of axes: enough to fill a GPU, and few sums.
constexpr size_t kMostAxisBlocks = 64;

// A table's sums over diagonals, which all passes add to.
struct TableSums {
  TableOf table;
  AnyView<float> to;
  Rows sums;  // [1, heads, bands * 2 tile, columns16]
};

class BackwardCall {
 public:
  BackwardCall(Launcher& launcher, const Operands<float>& operands, const ScoreGrad<float>& grad)
      : launcher_(launcher),
        a_(launcher.arguments()),
        operands_(operands),
        grad_(grad),
        q_(launcher, grad.q, a_.heads, a_.queries),
        q_imag_(launcher, grad.q_imag, a_.heads, a_.queries),
        r_(launcher, grad.table_query, a_.heads, a_.queries),
        k_(launcher, grad.k, a_.key_heads, a_.keys),
        v_(launcher, grad.v, a_.key_heads, a_.keys) {
    if (grad.query_bias) {
      a_.d_query_bias = rows_of(grad.query_bias);
      launcher.fill(a_.d_query_bias, a_.batch, a_.heads, 0, a_.queries, 0);
    }
    if (grad.key_bias) a_.d_key_bias = launcher.zeros(a_.batch, a_.heads, a_.keys, 1);
    a_.bands = static_cast<int32_t>((a_.diagonals + launcher.tile() - 2) / launcher.tile()) + 1;
    add_axis_sums();
    add_table(TableOf::kOnQuery, grad.on_query);
    add_table(TableOf::kOnKey, grad.on_key);
    add_table(TableOf::kOnValue, grad.on_value);
    add_table(TableOf::kBias, grad.bias);
    add_table(TableOf::kWeight, grad.weight);
  }

  void run(const DevicePass& pass) {
    launcher_.enter(pass);
    if (q_ || grad_.query_bias) query_gradients(pass);
    if (q_imag_) gradients_of_q_imag(pass);
    if (r_ && a_.on_query.rows)
      launch_sums(Kernel::kQueryGradients, pass, kTable, false, r_,
                  round_up(r_.rows().columns, 16));
    if (what_of_axes_ != 0) axis_gradients(pass);
    if (k_ || grad_.key_bias) key_gradients(pass);
    if (v_) value_gradients(pass);
    for (const TableSums& table : tables_) table_gradients(table);
  }

  void finish() {
    finish_axes();
    for (Total* total : {&q_, &q_imag_, &r_, &k_, &v_}) total->finish();
    if (grad_.key_bias) launcher_.copy(a_.d_key_bias, rows_of(grad_.key_bias), a_.heads, a_.keys);
    for (const TableSums& table : tables_) fold(table);
  }

 private:
  bool is_scalar(TableOf table) const {
    return table == TableOf::kBias || table == TableOf::kWeight;
  }

  void add_table(TableOf table, const AnyView<float>& to) {
    if (!to) return;
    const int32_t columns16 = is_scalar(table) ? 1 : round_up(to.columns, 16);
    tables_.push_back(
        {table, to,
         launcher_.zeros(1, a_.heads, int64_t{a_.bands} * 2 * launcher_.tile(), columns16)});
  }

  // The rows of q, or of table_query, that meet A.
  Total& rows_of_tables() { return a_.table_query ? r_ : q_; }

  // Sums of the axes' gradients, which all passes add to.
  void add_axis_sums() {
    size_t tiles = 0;
    for (const DevicePass& pass : launcher_.passes())
      tiles = std::max(tiles, pass.host.query_tiles.size());
    a_.blocks = static_cast<int32_t>(std::min(tiles, kMostAxisBlocks));
    if (grad_.axis_bias) {
      what_of_axes_ |= kBias;
      a_.axis_bias_rows = static_cast<int32_t>(grad_.axis_bias.rows);
      // Zeros of float64 have the bits of two of float32.
      a_.axis_bias_sums = static_cast<double*>(
          launcher_.zeros(1, a_.heads, a_.blocks * grad_.axis_bias.rows, 2).data);
    }
    if (a_.axis_on_query && (grad_.axis_on_query || rows_of_tables())) {
      what_of_axes_ |= kTable;
      a_.d_axis_products = static_cast<float*>(
          launcher_.zeros(a_.batch, a_.heads, a_.queries, a_.axis_table_rows).data);
    }
  }

  void axis_gradients(const DevicePass& pass) {
    Arguments a = a_;
    a.what = what_of_axes_;
    a.item_count = static_cast<int32_t>(pass.host.query_tiles.size());
    launcher_.launch_tiles(Kernel::kAxisGradients, a, a.blocks, a.heads);
  }

  void finish_axes() {
    Arguments a = a_;
    const auto write = [&](Kernel kernel, const AnyView<float>& to) {
      if (!to) return;
      a.to = rows_of(to);
      a.shared_heads = to.heads == 1 ? 1 : 0;
      launcher_.launch_rows(kernel, a, to.rows * to.columns, to.heads, 1);
    };
    write(Kernel::kAxisBiasGrad, grad_.axis_bias);
    write(Kernel::kAxisTableGrad, grad_.axis_on_query);
    if (!a_.d_axis_products || !rows_of_tables()) return;
    a.to = rows_of_tables().rows();
    launcher_.launch_rows(Kernel::kAxisRowsGrad, a, int64_t{a.queries} * a.axis_on_query.columns,
                          a.heads, a.batch);
  }

  // Launches a kernel whose sums are one for each sweep, or one for all, and adds them to `total`,
  // rotated back by the sides of the sweeps.
  void launch_sums(Kernel kernel, const DevicePass& pass, int32_t what, bool of_sweeps,
                   Total& total) {
    const bool of_values = kernel == Kernel::kValueGradients;
    launch_sums(kernel, pass, what, of_sweeps, total, of_values ? a_.width16 : a_.depth16);
  }
  void launch_sums(Kernel kernel, const DevicePass& pass, int32_t what, bool of_sweeps,
                   Total& total, int32_t columns16) {
    const bool of_queries = kernel == Kernel::kQueryGradients;
    const PassPlan& host = pass.host;
    const int64_t heads = of_queries ? a_.heads : a_.key_heads;
    const int64_t rows = of_queries ? a_.queries : a_.keys;
    const int64_t of_sweep = a_.batch * heads * rows * columns16;
    const int32_t copies = of_sweeps ? a_.sweeps : 1;
    Arguments a = a_;
    a.what = what;
    Rows sums;
    if (total) {
      // Entries of the sums: those of a sweep behind those of the one before.
      sums = launcher_.zeros(a_.batch, heads, rows * copies, columns16);
      a.sums = static_cast<float*>(sums.data);
      a.sums_of_sweep = of_sweeps ? of_sweep : 0;
      sums.head_stride = rows * columns16;
      sums.batch_stride = heads * sums.head_stride;
    }
    const auto tiles =
        static_cast<int64_t>(of_queries ? host.query_tiles.size() : host.key_tiles.size());
    launcher_.launch_tiles(kernel, a, tiles, heads, total ? (columns16 + 127) / 128 : 1);
    if (!total) return;
    for (int32_t n = 0; n < copies; ++n) {
      const auto at = static_cast<size_t>(n);
      const DeviceSide* const side =
          !of_sweeps ? nullptr : (of_queries ? pass.queries[at] : pass.keys[at]).get();
      Rows part = sums;
      part.data = static_cast<float*>(sums.data) + n * of_sweep;
      launcher_.add_sums(part, side, total.rows(), heads,
                         of_queries ? host.first_query : host.first_key,
                         of_queries ? host.queries : host.keys);
    }
  }

  void query_gradients(const DevicePass& pass) {
    const int32_t table = q_ && a_.on_query.rows && !a_.table_query ? kTable : 0;
    const int32_t products = q_ ? kProducts : 0, bias = grad_.query_bias ? kBias : 0;
    const bool rotated = launcher_.rotates_queries();
    launch_sums(Kernel::kQueryGradients, pass, products | bias | (rotated ? 0 : table), rotated,
                q_);
    if (rotated && table != 0) launch_sums(Kernel::kQueryGradients, pass, table, false, q_);
  }
  void gradients_of_q_imag(const DevicePass& pass) {
    launch_sums(Kernel::kQueryGradients, pass, kImaginary, launcher_.rotates_queries(), q_imag_);
  }
  void key_gradients(const DevicePass& pass) {
    const int32_t table = k_ && a_.on_key.rows ? kTable : 0;
    const int32_t products = k_ ? kProducts : 0, bias = grad_.key_bias ? kBias : 0;
    const bool rotated = launcher_.rotates_keys();
    launch_sums(Kernel::kKeyGradients, pass, products | bias | (rotated ? 0 : table), rotated, k_);
    if (k_ && operands_.q_imag) launch_sums(Kernel::kKeyGradients, pass, kImaginary, rotated, k_);
    if (rotated && table != 0) launch_sums(Kernel::kKeyGradients, pass, table, false, k_);
  }
  void value_gradients(const DevicePass& pass) {
    launch_sums(Kernel::kValueGradients, pass, 0, false, v_);
  }

  void table_gradients(const TableSums& table) {
    Arguments a = a_;
    a.table = table.table;
    a.sums = static_cast<float*>(table.sums.data);
    if (is_scalar(table.table))
      launcher_.launch_tiles(Kernel::kScalarGradients, a, a_.bands, a_.heads);
    else
      launcher_.launch_tiles(Kernel::kTableGradients, a, a_.bands, a_.heads,
                             (table.sums.columns + 63) / 64);
  }

  void fold(const TableSums& table) {
    const DevicePlan::DiagonalLists& lists =
        launcher_.own().diagonals(table.table, table.to.rows, launcher_.stream());
    Arguments a = a_;
    a.to = rows_of(table.to);
    a.rows = table.to.rows;
    a.row_begin = lists.row_begin.as<const int32_t>();
    a.diagonal_at = lists.diagonal_at.as<const int32_t>();
    a.sums = static_cast<float*>(table.sums.data);
    a.tile = launcher_.tile();
    a.columns16 = table.sums.columns;
    a.shared_heads = table.to.heads == 1 ? 1 : 0;
    launcher_.launch_rows(Kernel::kFoldTable, a, a.rows * a.to.columns, table.to.heads, 1);
  }

  Launcher& launcher_;
  Arguments& a_;
  const Operands<float>& operands_;
  const ScoreGrad<float>& grad_;
  Total q_, q_imag_, r_, k_, v_;
  int32_t what_of_axes_ = 0;  // Parts
  std::vector<TableSums> tables_;
};

}  // namespace

void attend_backward(const Machine& machine, const Operands<float>& operands,
                     const PreparedPlan& plan, const Attended<const float>& result,
                     AnyView<const float> d_out, const ScoreGrad<float>& grad, void* stream) {
  Launcher launcher(machine, operands, plan, PassOf::kBackward, stream);
  Arguments& a = launcher.arguments();
  a.out = rows_of(result.out);
  a.lse = rows_of(result.lse);
  a.d_out = rows_of(d_out);
  a.means = launcher.memory<float>(int64_t{a.batch} * a.heads * a.queries);
  a.d_query_sink = rows_of(grad.query_sink);
  launcher.launch_rows(Kernel::kMeans, a, a.queries, a.heads, a.batch);
  if (!grad.sink.empty()) {
    a.d_sink = grad.sink.data();
    launcher.launch_rows(Kernel::kSinkGradient, a, 1, a.heads, 1);
  }
  BackwardCall call(launcher, operands, grad);
  for (const DevicePass& pass : launcher.passes()) call.run(pass);
  call.finish();
}

}  // namespace sextant::cuda
