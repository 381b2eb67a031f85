#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/check_score.h"
#include "sextant/c/guard.h"
#include "sextant/c/handles.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

// The one batch entry that is appended.
AnyView<const float> rows_of(const sextant_array& array, const char* name) {
  if (array.batch != 1)
    fail(std::string("cache: ") + name + ".batch: expected 1, but got " +
         std::to_string(array.batch));
  return c::operand_of(array, name);
}

std::vector<CachedBatch::Entry> entries_of(const sextant_decoding& d) {
  c::view_of(d.q, "q");  // its sizes are valid
  std::vector<CachedBatch::Entry> entries;
  const Rotation* rotation = c::rotation_of(d.rope);
  for (int64_t b = 0; b < d.q.batch; ++b)
    entries.push_back({(&need(d.sequences, "decoding: sequences"))[b], rotation});
  return entries;
}

}  // namespace

sextant_status sextant_cache_create(const sextant_cache_shape* shape, sextant_cache** cache) {
  return guarded([&] {
    const sextant_cache_shape& s = need(shape, "shape");
    const bool int8 = s.dtype == SEXTANT_INT8;
    KvCacheShape own = {.key_heads = s.key_heads,
                        .key_columns = s.key_columns,
                        .value_columns = s.value_columns,
                        .dtype = int8 ? DType::kBfloat16 : c::dtype_of(s.dtype, "shape"),
                        .int8 = int8};
    if (s.page_rows != 0) own.page_rows = s.page_rows;
    c::give(cache, "cache", KvCache(own));
  });
}

void sextant_cache_destroy(sextant_cache* cache) { c::destroy(cache, "cache"); }

sextant_status sextant_cache_add(sextant_cache* cache, int64_t first_position, int64_t* sequence) {
  return guarded([&] {
    int64_t& id = need(sequence, "sequence");
    id = need(cache, "cache").cache.add(first_position);
  });
}

sextant_status sextant_cache_add_rotated_keys(sextant_cache* cache, int64_t first_position,
                                              const sextant_rope* rope, int64_t* sequence) {
  return guarded([&] {
    int64_t& id = need(sequence, "sequence");
    id = need(cache, "cache").cache.add(first_position, *need(rope, "rope").rotation);
  });
}

sextant_status sextant_cache_reserve(sextant_cache* cache, int64_t sequence, int64_t rows) {
  return guarded([&] { need(cache, "cache").cache.reserve(sequence, rows); });
}

sextant_status sextant_cache_fork(sextant_cache* cache, int64_t sequence, int64_t rows,
                                  int64_t* fork) {
  return guarded([&] {
    int64_t& id = need(fork, "fork");
    id = need(cache, "cache").cache.fork(sequence, rows);
  });
}

sextant_status sextant_cache_remove(sextant_cache* cache, int64_t sequence) {
  return guarded([&] { need(cache, "cache").cache.remove(sequence); });
}

sextant_status sextant_cache_append(sextant_cache* cache, int64_t sequence, const sextant_array* k,
                                    const sextant_array* v) {
  return guarded([&] {
    need(cache, "cache")
        .cache.append(sequence, rows_of(need(k, "k"), "k"), rows_of(need(v, "v"), "v"));
  });
}

sextant_status sextant_cache_truncate(sextant_cache* cache, int64_t sequence, int64_t rows) {
  return guarded([&] { need(cache, "cache").cache.truncate(sequence, rows); });
}

sextant_status sextant_cache_drop(sextant_cache* cache, int64_t sequence, int64_t first,
                                  int64_t count) {
  return guarded([&] { need(cache, "cache").cache.drop(sequence, first, count); });
}

sextant_status sextant_cache_rows(const sextant_cache* cache, int64_t sequence, int64_t* rows) {
  return guarded([&] { need(rows, "rows") = need(cache, "cache").cache.rows(sequence); });
}

sextant_status sextant_decoding_diagonals(const sextant_cache* cache,
                                          const sextant_decoding* decoding, int64_t* farthest,
                                          int64_t* count) {
  return guarded([&] {
    const sextant_decoding d = c::read(decoding, "decoding");
    const CachedBatch batch(need(cache, "cache").cache, entries_of(d), d.q.rows);
    int64_t& to = need(count, "count");
    need(farthest, "farthest") = batch.plan().diagonals.farthest;
    to = batch.plan().diagonals.count;
  });
}

sextant_status sextant_decode(const sextant_cache* cache, const sextant_decoding* decoding,
                              const sextant_array* out, const sextant_array* lse,
                              const sextant_pool* pool) {
  return guarded([&] {
    const sextant_decoding d = c::read(decoding, "decoding");
    const sextant_terms terms = c::read_or_none(d.terms, "terms");
    const AnyView<float> q = c::operand_of(d.q, "q");
    const CachedBatch batch(need(cache, "cache").cache, entries_of(d), d.q.rows);
    Score<float> score = {{.q = q, .scale = c::scale_of(d.scale, d.q.columns)}};
    batch.place(score);
    c::set_terms(terms, score.pages.rows, score);
    c::each_table(terms, score.row_at, [&](const char*, const sextant_table& table, auto& map) {
      if (table.rows) map = {table.rows, static_cast<size_t>(score.diagonals.count)};
    });
    const Shape shape = {.batch = q.batch, .heads = q.heads, .rows = q.rows};
    Attended<float> result = {.out = c::output_of(need(out, "out"), "out")};
    check_out<float>(score, result.out);
    std::vector<float> unused;
    if (lse) {
      result.lse = c::as_float(c::output_of(*lse, "lse"), "lse");
    } else {
      unused.resize(static_cast<size_t>(shape.batch * shape.heads * shape.rows));
      result.lse = contiguous(unused, shape);
    }
    attend<float>(score, result, cpu_backend(), c::executor_of(pool));
  });
}
