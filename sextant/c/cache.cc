// Each function is the one of KvCache or CachedBatch with its arguments converted. Use holds the
// cache for a call.
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/cache/cache_file.h"

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

// The batch of a decoding whose q has valid sizes.
CachedBatch batch_of(const KvCache& cache, const sextant_decoding& d) {
  std::vector<CachedBatch::Entry> entries;
  for (int64_t b = 0; b < d.q.batch; ++b)
    entries.push_back(
        {(&need(d.sequences, "decoding: sequences"))[b], c::rotation_of(d.rope), d.window});
  const auto counts = static_cast<size_t>(d.queries ? d.q.batch : 0);
  return CachedBatch(cache, entries, d.q.rows, {d.queries, counts});
}

}  // namespace

sextant_status sextant_cache_create(const sextant_cache_shape* shape, sextant_cache** cache) {
  return guarded([&] {
    const sextant_cache_shape s = c::read(shape, "cache_shape");
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
    id = c::Use(cache)->add(first_position);
  });
}

sextant_status sextant_cache_add_rotated_keys(sextant_cache* cache, int64_t first_position,
                                              const sextant_rope* rope, int64_t* sequence) {
  return guarded([&] {
    int64_t& id = need(sequence, "sequence");
    id = c::Use(cache)->add(first_position, *need(rope, "rope").rotation);
  });
}

sextant_status sextant_cache_reserve(sextant_cache* cache, int64_t sequence, int64_t rows) {
  return guarded([&] { c::Use(cache)->reserve(sequence, rows); });
}

sextant_status sextant_cache_fork(sextant_cache* cache, int64_t sequence, int64_t rows,
                                  int64_t* fork) {
  return guarded([&] {
    int64_t& id = need(fork, "fork");
    id = c::Use(cache)->fork(sequence, rows);
  });
}

sextant_status sextant_cache_remove(sextant_cache* cache, int64_t sequence) {
  return guarded([&] { c::Use(cache)->remove(sequence); });
}

sextant_status sextant_cache_append(sextant_cache* cache, int64_t sequence, const sextant_array* k,
                                    const sextant_array* v) {
  return guarded([&] {
    c::Use(cache)->append(sequence, rows_of(need(k, "k"), "k"), rows_of(need(v, "v"), "v"));
  });
}

sextant_status sextant_cache_truncate(sextant_cache* cache, int64_t sequence, int64_t rows) {
  return guarded([&] { c::Use(cache)->truncate(sequence, rows); });
}

sextant_status sextant_cache_drop(sextant_cache* cache, int64_t sequence, int64_t first,
                                  int64_t count) {
  return guarded([&] { c::Use(cache)->drop(sequence, first, count); });
}

sextant_status sextant_cache_rows(const sextant_cache* cache, int64_t sequence, int64_t* rows) {
  return guarded([&] { need(rows, "rows") = c::Use(cache)->rows(sequence); });
}

sextant_status sextant_cache_read(const sextant_cache* cache, int64_t sequence, int64_t first,
                                  const sextant_array* k, const sextant_array* v) {
  return guarded([&] {
    const c::Use own(cache);
    const AnyView<float> keys = c::output_of(need(k, "k"), "k");
    const AnyView<float> values = c::output_of(need(v, "v"), "v");
    if (c::share_memory(*k, *v)) fail("cache: k: expected memory of its own, but v shares it");
    own->read(sequence, first, keys, values);
  });
}

sextant_status sextant_cache_memory(const sextant_cache* cache, int64_t* pages, int64_t* bytes) {
  return guarded([&] {
    const c::Use own(cache);
    const auto bytes_of = [](const auto& x, int64_t element) {
      return x.batch * x.heads * x.rows * x.columns * element;
    };
    int64_t& all = need(bytes, "bytes");
    need(pages, "pages") = own->pages_in_use();
    all = 0;
    for (const AnyView<const float>& x : {own->key_pages(), own->value_pages()})
      all += bytes_of(x, x.element_size());
    for (const Int8Pages<float>& x : {own->int8_key_pages(), own->int8_value_pages()})
      all += bytes_of(x.numbers, 1) + bytes_of(x.scale, sizeof(float));
  });
}

sextant_status sextant_cache_save(const sextant_cache* cache, int64_t sequence, const char* path) {
  return guarded([&] { save_cache(*c::Use(cache), sequence, &need(path, "path")); });
}

sextant_status sextant_cache_load(sextant_cache* cache, const char* path, int64_t* sequence) {
  return guarded([&] {
    int64_t& id = need(sequence, "sequence");
    id = load_cache(&need(path, "path"), *c::Use(cache));
  });
}

sextant_status sextant_decoding_diagonals(const sextant_cache* cache,
                                          const sextant_decoding* decoding, int64_t* farthest,
                                          int64_t* count) {
  return guarded([&] {
    const sextant_decoding d = c::read(decoding, "decoding");
    c::view_of(d.q, "q");
    const CachedBatch batch = batch_of(*c::Use(cache), d);
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
    const c::Use own(cache);
    const CachedBatch batch = batch_of(*own, d);
    Score<float> score = {{.q = q, .scale = c::scale_of(d.scale, d.q.columns)}};
    batch.place(score);
    c::refuse_axes(terms, "decoding");
    c::set_terms(terms, score.pages.rows, score);
    c::each_table(terms, score.row_at, [&](const char*, const sextant_table& table, auto& map) {
      if (table.rows) map = {table.rows, static_cast<size_t>(score.diagonals.count)};
    });
    std::vector<float> unused;
    const Attended<float> result = c::results_of(d.q, {}, {}, out, lse, unused);
    attend<float>(score, result, cpu_backend(), c::executor_of(pool));
  });
}
