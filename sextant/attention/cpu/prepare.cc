// Tables, packed once for all tiles, and a query of the machine's instructions.
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/attention/cpu/prepare.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/parallel.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/attention/cpu/tile/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Packs rows [row, row + kLanes) of one head.
void pack_table_rows(const Table<float>& table, float factor, int64_t head, int64_t row,
                     PackedTable* vectors) {
  const HostView<const float>& x = table.rows;
  const float* from = x.at(0, head, row);
  const int64_t count = std::min(kLanes, vectors->count - row);
  const int64_t at = (head * vectors->count16 + row) * vectors->columns16;
  float* panel = vectors->panels + at;
  pack_panel(from, x.row_stride, x.column_stride, count, vectors->columns, factor, panel);
  if (float* rows = vectors->rows)
    unpack_panel(panel, kLanes, vectors->columns16, rows + at, vectors->columns16);
  vectors->finite[(head * vectors->count16 + row) / kLanes] =
      all_finite(panel, kLanes * vectors->columns16) ? 1 : 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

SEXTANT_EXPORT(pack_table_rows);
SEXTANT_EXPORT(has_dots);

bool has_dots_of_pairs() { return SEXTANT_DISPATCH(has_dots)(); }

void pack_vectors(const Table<float>& table, float factor, bool rows, PackedTable& vectors,
                  Workspace& memory, const Executor& executor) {
  const int64_t size = vectors.heads * vectors.count16 * vectors.columns16;
  vectors.panels = memory.floats(size);
  if (rows) vectors.rows = memory.floats(size);
  const int64_t flags = vectors.heads * vectors.count16 / kLanes;
  vectors.finite = reinterpret_cast<uint8_t*>(memory.floats(round_up(flags, 4) / 4));
  constexpr double kSecondsOfFloat = 0.5e-9;
  const int64_t panels = vectors.count16 / kLanes;
  share_out(executor, vectors.heads * panels, kSecondsOfFloat * static_cast<double>(size),
            [&](int64_t n, int) {
              SEXTANT_DISPATCH(pack_table_rows)
              (table, factor, n / panels, n % panels * kLanes, &vectors);
            });
}

}  // namespace sextant::cpu
#endif
