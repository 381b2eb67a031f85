#include "sextant/cache/decoding.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/cache/cache_checks.h"

namespace sextant {

using namespace cache_checks;

namespace {

void check(const DecodingShape& shape, const KvCacheShape& cache) {
  if (shape.heads < 1 || shape.heads % cache.key_heads != 0)
    bad("decoding: heads", "a multiple of the " + std::to_string(cache.key_heads) + " key heads",
        shape.heads);
  expect_between("decoding: queries", shape.queries, 1, kFarthestPosition);
  expect_between("decoding: most_rows", shape.most_rows, shape.queries, kFarthestPosition);
}

// The last `count` rows of a map of all diagonals.
std::span<const int32_t> last_rows(const char* name, std::span<const int32_t> map, int64_t most,
                                   int64_t count) {
  if (map.empty()) return map;
  if (std::ssize(map) != most)
    bad("decoding: row_at." + std::string(name), std::to_string(most) + ", one for each diagonal",
        std::ssize(map));
  return map.last(static_cast<size_t>(count));
}

// A table by distance without map: its rows are those of all diagonals, of which the last `count`
// remain.
void keep_last_rows(const char* name, View<const float>& table, int64_t most, int64_t count) {
  if (!table) return;
  if (table.rows != most)
    bad("decoding: " + std::string(name) + ".rows",
        std::to_string(most) + ", one for each of diagonals(), as there is no map", table.rows);
  table.data += (most - count) * table.row_stride;
  table.rows = count;
}

}  // namespace

Decoding::Decoding(const KvCache& cache, std::vector<CachedBatch::Entry> entries,
                   const DecodingShape& shape, const RowMaps& row_at, const Backend& backend,
                   const Context& context)
    : shape_((check(shape, cache.shape()), shape)),
      key_heads_(cache.shape().key_heads),
      key_columns_(cache.shape().key_columns),
      value_columns_(cache.shape().value_columns),
      row_at_(row_at),
      batch_(cache, entries, shape.queries, {}, shape.most_rows),
      distances_(entries.empty() ? shape.most_rows : batch_.plan().diagonals.count),
      context_(context) {
  context_.workspace = &memory_;
  set_diagonals(distances_);
  prepared_.emplace(batch_.plan(), plan_shape(), backend, context_, Passes::kForward);
}

void Decoding::set_diagonals(int64_t count) {
  Plan& plan = batch_.plan_;
  plan.diagonals = {.farthest = count - 1, .count = count};
  const auto map = [&](const char* name, std::span<const int32_t> all) {
    return last_rows(name, all, distances_, count);
  };
  plan.row_at = {.weight = map("weight", row_at_.weight),
                 .bias = map("bias", row_at_.bias),
                 .on_query = map("on_query", row_at_.on_query),
                 .on_key = map("on_key", row_at_.on_key),
                 .on_value = map("on_value", row_at_.on_value)};
}

PlanShape Decoding::plan_shape() const {
  return {.batch = std::ssize(batch_.members_),
          .heads = shape_.heads,
          .key_heads = key_heads_,
          .queries = shape_.queries,
          .keys = batch_.rows_,
          .page_rows = batch_.page_rows_,
          .columns = key_columns_,
          .value_columns = value_columns_,
          .key_table = shape_.key_table};
}

void Decoding::step(const KvCache& cache, std::span<const int64_t> counts) {
  ready_ = false;
  for (const CachedBatch::Entry& entry : batch_.entries_)
    if (cache.rows(entry.sequence) > shape_.most_rows)
      bad("decoding: sequence " + std::to_string(entry.sequence) + ": rows",
          "at most " + std::to_string(shape_.most_rows) + " (most_rows)",
          cache.rows(entry.sequence));
  batch_.renew(cache, counts);
  // The first step has all diagonals, so that the workspace grows to its size.
  set_diagonals(grown_ ? std::max<int64_t>(batch_.plan().diagonals.count, 1) : distances_);
  prepared_->renew(batch_.plan(), plan_shape(), context_);
  grown_ = ready_ = true;
}

void Decoding::attend(const KvCache& cache, Operands<float> operands, const Attended<float>& result,
                      const Executor* executor) {
  if (!ready_) fail("decoding: attend: expected a step() that succeeds before it");
  batch_.set_keys(operands, cache);
  const int64_t most = distances_, count = prepared_->plan().diagonals.count;
  const auto keep = [&](const char* name, View<const float>& table, auto map) {
    if (map.empty()) keep_last_rows(name, table, most, count);
  };
  keep("weight", operands.weight, row_at_.weight);
  keep("bias", operands.bias, row_at_.bias);
  keep("on_query", operands.on_query, row_at_.on_query);
  keep("on_key", operands.on_key, row_at_.on_key);
  keep("on_value", operands.on_value, row_at_.on_value);
  if (View<const float>& bias = operands.query_bias) {
    if (bias.columns != most)
      bad("decoding: query_bias.columns", std::to_string(most) + ", one for each diagonal",
          bias.columns);
    bias.data += (most - count) * bias.column_stride;
    bias.columns = count;
  }
  Context context = context_;
  if (executor) context.executor = executor;
  sextant::attend<float>(operands, *prepared_, result, context);
}

}  // namespace sextant
