/* The C API, compiled as C99 against an installed prefix. Attention is compared with the equation
   in double, tables with cos and sin of the C library, decoding with the whole sequence at once.
   With -DWITH_CONFIG also the part that reads configurations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sextant/sextant.h"
#ifdef WITH_CONFIG
#include "sextant/sextant_config.h"
#endif

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "%s: not so; sextant_error(): %s\n", what, sextant_error());
}

static void expect_error(sextant_status status, const char* message) {
  if (status == SEXTANT_BAD_ARGUMENT && strstr(sextant_error(), message)) return;
  ++failures;
  fprintf(stderr, "expected an error with \"%s\", but got status %d: %s\n", message, (int)status,
          sextant_error());
}

enum { kHeads = 4, kKeyHeads = 2, kRows = 19, kColumns = 8, kWindow = 6 };
static float q[kHeads * kRows * kColumns], k[kKeyHeads * kRows * kColumns];
static float v[kKeyHeads * kRows * kColumns], out[kHeads * kRows * kColumns];
static float lse[kHeads * kRows], bias[kHeads * kRows], sink[kHeads] = {0.5f, -1, 2, 0};

static sextant_array array(const float* data, int heads, int rows, int columns) {
  return sextant_contiguous(data, SEXTANT_FLOAT32, 1, heads, rows, columns);
}

static void fill(void) {
  int n;
  for (n = 0; n < kHeads * kRows * kColumns; ++n) q[n] = sinf(0.37f * (float)n);
  for (n = 0; n < kKeyHeads * kRows * kColumns; ++n) k[n] = sinf(0.11f * (float)n);
  for (n = 0; n < kKeyHeads * kRows * kColumns; ++n) v[n] = cosf(0.23f * (float)n);
}

/* One row of the equation in double: a head, a query, the distances that it sees. */
static double naive(int head, int query, int column, int64_t farthest, int64_t count) {
  const int key_head = head / (kHeads / kKeyHeads);
  double sum = exp(sink[head]), value = 0;
  int key, c;
  for (key = query < kWindow ? 0 : query - kWindow + 1; key <= query; ++key) {
    double score = 0;
    for (c = 0; c < kColumns; ++c)
      score += (double)q[(head * kRows + query) * kColumns + c] *
               (double)k[(key_head * kRows + key) * kColumns + c];
    score = exp(score / sqrt(kColumns) + bias[head * count + farthest - (query - key)]);
    sum += score;
    value += score * v[(key_head * kRows + key) * kColumns + column];
  }
  return value / sum;
}

static void test_attention(void) {
  const sextant_array result = array(out, kHeads, kRows, kColumns);
  const sextant_array sums = array(lse, kHeads, kRows, 1);
  SEXTANT_NEW(sextant_attention, a);
  SEXTANT_NEW(sextant_terms, terms);
  double slopes[kHeads], worst = 0;
  int64_t farthest = 0, count = 0;
  sextant_pool* pool = NULL;
  int h, i, c;
  a.q = array(q, kHeads, kRows, kColumns);
  a.k = array(k, kKeyHeads, kRows, kColumns);
  a.v = array(v, kKeyHeads, kRows, kColumns);
  a.window = kWindow;
  a.terms = &terms;
  terms.sink = sink;
  expect(sextant_attention_diagonals(&a, &farthest, &count) == SEXTANT_OK, "diagonals");
  expect(farthest == kWindow - 1 && count == kWindow, "the distances of a window");
  expect(sextant_alibi_slopes(kHeads, 8, slopes) == SEXTANT_OK, "slopes");
  for (h = 0; h < kHeads; ++h)
    for (i = 0; i < count; ++i) bias[h * count + i] = (float)(-slopes[h] * (double)(farthest - i));
  terms.bias.table = array(bias, kHeads, (int)count, 1);
  expect(sextant_pool_create(2, &pool) == SEXTANT_OK, "pool");
  expect(sextant_attend(&a, &result, &sums, pool) == SEXTANT_OK, "attend");
  for (h = 0; h < kHeads; ++h)
    for (i = 0; i < kRows; ++i)
      for (c = 0; c < kColumns; ++c)
        worst = fmax(worst,
                     fabs(out[(h * kRows + i) * kColumns + c] - naive(h, i, c, farthest, count)));
  expect(worst < 1e-6, "attention agrees with the equation");
  for (i = 0, worst = 0; i < kColumns; ++i) worst += (double)q[i] * (double)k[i];
  worst = log(exp(sink[0]) + exp(worst / sqrt(kColumns)));
  expect(fabs(lse[0] - worst) < 1e-6, "lse of a query that sees itself alone");

  expect_error(sextant_attend(NULL, &result, NULL, pool), "attention: expected a pointer");
  expect_error(sextant_attend(&a, NULL, NULL, pool), "out: expected a pointer");
  a.k.columns = 7;
  expect_error(sextant_attend(&a, &result, NULL, pool), "k.columns: expected 8");
  a.k.columns = kColumns;
  a.q.dtype = (sextant_dtype)9;
  expect_error(sextant_attend(&a, &result, NULL, pool), "q.dtype");
  a.q.dtype = SEXTANT_FLOAT32;
  a.v.heads = -2;
  expect_error(sextant_attend(&a, &result, NULL, pool), "v: expected sizes of at least 0");
  a.v.heads = kKeyHeads;
  a.sees = SEXTANT_ALL_KEYS;
  expect_error(sextant_attend(&a, &result, NULL, pool), "window: expected 0");
  expect_error(sextant_pool_create(0, &pool), "threads");
  sextant_pool_destroy(pool);
}

static void test_t5(void) {
  int32_t rows[2 * 200 - 1];
  expect(sextant_t5_rows(32, 128, 1, 199, 399, rows) == SEXTANT_OK, "T5's rows");
  expect(rows[199] == 0 && rows[198] == 1 && rows[200] == 17 && rows[0] == 15, "T5's buckets");
  expect_error(sextant_t5_rows(1, 128, 1, 199, 399, rows), "buckets");
}

static void test_tables(void) {
  enum { kPairs = kColumns / 2, kFirst = 100000, kCount = 5 };
  float cos_table[kCount * kPairs], sin_table[kCount * kPairs], row[kColumns] = {0};
  const int64_t positions[1] = {kFirst};
  sextant_array x = array(row, 1, 1, kColumns);
  sextant_rope* rope = NULL;
  int64_t first = 0, second = 0;
  double worst = 0;
  int n, f;
  expect(sextant_rope_create(kColumns, 10000, SEXTANT_HALF_SPLIT, 0, &rope) == SEXTANT_OK, "rope");
  expect(sextant_rope_pairs(rope) == kPairs && sextant_rope_gain(rope) == 1, "pairs");
  expect(sextant_rope_columns(rope, 1, &first, &second) == SEXTANT_OK, "columns");
  expect(first == 1 && second == 1 + kPairs, "half-split columns");
  expect(sextant_rope_tables(rope, kFirst, kCount, cos_table, sin_table) == SEXTANT_OK, "tables");
  for (n = 0; n < kCount; ++n)
    for (f = 0; f < kPairs; ++f) {
      const double angle = (kFirst + n) * pow(10000, -2.0 * f / kColumns);
      worst = fmax(worst, fabs(cos_table[n * kPairs + f] - cos(angle)));
      worst = fmax(worst, fabs(sin_table[n * kPairs + f] - sin(angle)));
    }
  expect(worst < 1e-7, "tables agree with cos and sin in double");
  for (n = 0; n < kColumns; ++n) row[n] = n < kPairs ? 1.0f : 0.0f;
  expect(sextant_rope_rotate(rope, &x, positions, NULL) == SEXTANT_OK, "rotate");
  expect(row[0] == cos_table[0] && row[kPairs] == sin_table[0], "rotation by the tables");
  expect_error(sextant_rope_columns(rope, kPairs, &first, &second), "pair: expected 0 to 3");
  expect_error(sextant_rope_tables(rope, 0, -1, cos_table, sin_table), "count");
  sextant_rope_destroy(rope);
  rope = NULL;
  expect_error(sextant_rope_create(7, 10000, SEXTANT_HALF_SPLIT, 0, &rope), "even");
  expect(rope == NULL, "a function that failed writes nothing");
}

static void test_frequencies(void) {
  const double frequencies[2] = {1, 0.25};
  float cos_table[2], sin_table[2];
  sextant_rope* rope = NULL;
  int64_t first = 0, second = 0;
  expect(sextant_rope_create_from_frequencies(frequencies, 2, 1.5, SEXTANT_INTERLEAVED, 4, &rope) ==
             SEXTANT_OK,
         "frequencies");
  expect(sextant_rope_gain(rope) == 1.5, "gain");
  expect(sextant_rope_columns(rope, 1, &first, &second) == SEXTANT_OK && first == 6 && second == 7,
         "interleaved columns");
  expect(sextant_rope_tables(rope, 3, 1, cos_table, sin_table) == SEXTANT_OK, "tables");
  expect(fabs(cos_table[1] - cos(0.75)) < 1e-7, "a given frequency");
  sextant_rope_destroy(rope);
}

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif
static void test_old_names(void) {
  const double frequency = 0.5;
  sextant_rope* rope = NULL;
  expect(sextant_rope_create_from_speeds(/* the old name */ &frequency, 1, 1, SEXTANT_INTERLEAVED,
                                         0, &rope) == SEXTANT_OK,
         "an old name");
  expect(sextant_rope_pairs(rope) == 1, "a pair");
  sextant_rope_destroy(rope);
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Decodes row by row and compares with the whole sequence at once: the bits are the same. */
static void test_decoding(void) {
  const sextant_cache_shape shape = {sizeof shape, kKeyHeads, kColumns, kColumns, 16, SEXTANT_FLOAT32};
  const sextant_array result = array(out, kHeads, kRows, kColumns);
  SEXTANT_NEW(sextant_attention, whole);
  sextant_cache* cache = NULL;
  sextant_rope* rope = NULL;
  int64_t sequence = -1, fork = -1, rows = 0;
  int row, h;
  expect(sextant_rope_create(kColumns, 10000, SEXTANT_INTERLEAVED, 0, &rope) == SEXTANT_OK, "rope");
  whole.q = array(q, kHeads, kRows, kColumns);
  whole.k = array(k, kKeyHeads, kRows, kColumns);
  whole.v = array(v, kKeyHeads, kRows, kColumns);
  whole.rope = rope;
  expect(sextant_attend(&whole, &result, NULL, NULL) == SEXTANT_OK, "prefill");
  expect(sextant_cache_create(&shape, &cache) == SEXTANT_OK, "cache");
  expect(sextant_cache_add(cache, 0, &sequence) == SEXTANT_OK, "sequence");
  for (row = 0; row < kRows; ++row) {
    float step[kHeads * kColumns];
    const sextant_array into = array(step, kHeads, 1, kColumns);
    SEXTANT_NEW(sextant_decoding, d);
    sextant_array rows_of_k = array(k + row * kColumns, kKeyHeads, 1, kColumns);
    sextant_array rows_of_v = array(v + row * kColumns, kKeyHeads, 1, kColumns);
    rows_of_k.head_stride = rows_of_v.head_stride = kRows * kColumns;
    expect(sextant_cache_append(cache, sequence, &rows_of_k, &rows_of_v) == SEXTANT_OK, "append");
    d.q = array(q + row * kColumns, kHeads, 1, kColumns);
    d.q.head_stride = kRows * kColumns;
    d.sequences = &sequence;
    d.rope = rope;
    expect(sextant_decode(cache, &d, &into, NULL, NULL) == SEXTANT_OK, "decode");
    for (h = 0; h < kHeads; ++h)
      expect(memcmp(step + h * kColumns, out + (h * kRows + row) * kColumns,
                    sizeof(float) * kColumns) == 0,
             "decoding equals prefill");
    d.sequences = &fork;
    expect_error(sextant_decode(cache, &d, &into, NULL, NULL), "sequence");
  }
  expect(sextant_cache_fork(cache, sequence, 17, &fork) == SEXTANT_OK, "fork");
  expect(sextant_cache_truncate(cache, sequence, 3) == SEXTANT_OK, "truncate");
  expect(sextant_cache_rows(cache, sequence, &rows) == SEXTANT_OK && rows == 3, "rows kept");
  expect(sextant_cache_drop(cache, fork, 2, 5) == SEXTANT_OK, "drop");
  expect(sextant_cache_rows(cache, fork, &rows) == SEXTANT_OK && rows == 12, "rows left");
  expect(sextant_cache_remove(cache, fork) == SEXTANT_OK, "remove");
  expect_error(sextant_cache_rows(cache, fork, &rows), "sequence");
  sextant_cache_destroy(cache);
  sextant_rope_destroy(rope);
}

/* A plan for decoding, over rotated keys or others, gives the same as a plan for each call. */
static void test_decode_plan(int rotated) {
  const sextant_cache_shape shape = {sizeof shape, kKeyHeads, kColumns, kColumns, 16, SEXTANT_FLOAT32};
  float once[kHeads * kColumns] = {0}, steps[kHeads * kColumns] = {0};
  const sextant_array into_once = array(once, kHeads, 1, kColumns);
  const sextant_array into_steps = array(steps, kHeads, 1, kColumns);
  SEXTANT_NEW(sextant_decode_plan_options, options);
  SEXTANT_NEW(sextant_decode_plan_call, call);
  SEXTANT_NEW(sextant_terms, terms);
  SEXTANT_NEW(sextant_decoding, d);
  sextant_cache* cache = NULL;
  sextant_rope *rope = NULL, *other = NULL;
  sextant_decode_plan* plan = NULL;
  int64_t sequence = -1;
  int row;
  expect(sextant_rope_create(kColumns, 10000, SEXTANT_INTERLEAVED, 0, &rope) == SEXTANT_OK, "rope");
  expect(sextant_rope_create(kColumns, 500, SEXTANT_INTERLEAVED, 0, &other) == SEXTANT_OK, "other");
  expect(sextant_cache_create(&shape, &cache) == SEXTANT_OK, "cache");
  if (rotated)
    expect(sextant_cache_add_rotated_keys(cache, 5, rope, &sequence) == SEXTANT_OK,
           "rotated sequence");
  else
    expect(sextant_cache_add(cache, 5, &sequence) == SEXTANT_OK, "sequence");
  expect_error(sextant_cache_add_rotated_keys(cache, 5, NULL, &sequence), "rope");
  expect(sextant_cache_reserve(cache, sequence, kRows) == SEXTANT_OK, "reserve");
  options.sequences = d.sequences = &sequence;
  options.count = 1;
  options.heads = kHeads;
  options.queries = 1;
  options.most_rows = kRows;
  options.rope = d.rope = rope;
  expect(sextant_decode_plan_create(cache, &options, &plan) == SEXTANT_OK, "plan");
  call.q = d.q = array(q, kHeads, 1, kColumns);
  expect_error(sextant_decode_plan_attend(plan, cache, &call, &into_steps, NULL), "step");
  call.terms = &terms;
  terms.bias.table = array(NULL, kHeads, kRows, 1);
  expect_error(sextant_decode_plan_attend(plan, cache, &call, &into_steps, NULL),
               "terms.bias.table: expected data, or all sizes 0 (absent), but got NULL");
  call.terms = NULL;
  for (row = 0; row < kRows; ++row) {
    sextant_array rows_of_k = array(k + row * kColumns, kKeyHeads, 1, kColumns);
    sextant_array rows_of_v = array(v + row * kColumns, kKeyHeads, 1, kColumns);
    rows_of_k.head_stride = rows_of_v.head_stride = kRows * kColumns;
    expect(sextant_cache_append(cache, sequence, &rows_of_k, &rows_of_v) == SEXTANT_OK, "append");
    expect(sextant_decode_plan_step(plan, cache, NULL) == SEXTANT_OK, "step");
    expect(sextant_decode_plan_attend(plan, cache, &call, &into_steps, NULL) == SEXTANT_OK,
           "attend");
    expect(sextant_decode(cache, &d, &into_once, NULL, NULL) == SEXTANT_OK, "decode");
    expect(memcmp(once, steps, sizeof once) == 0, "a plan gives the bits of a single call");
  }
  d.rope = other;
  if (rotated) expect_error(sextant_decode(cache, &d, &into_once, NULL, NULL), "rotated keys");
  options.most_rows = 0;
  sextant_decode_plan_destroy(plan);
  plan = NULL;
  expect_error(sextant_decode_plan_create(cache, &options, &plan), "most_rows");
  expect(plan == NULL, "a call that fails makes no plan");
  sextant_cache_destroy(cache);
  sextant_rope_destroy(rope);
  sextant_rope_destroy(other);
}

/* A number that the cache's type would round to infinity is refused, and nothing is written. */
static void test_overflow(void) {
  sextant_cache_shape shape = {sizeof shape, 1, 2, 2, 16, SEXTANT_FLOAT16};
  float key[2] = {1, 70000}, value[2] = {1, 2};
  const sextant_array of_key = array(key, 1, 1, 2), of_value = array(value, 1, 1, 2);
  sextant_cache* cache = NULL;
  int64_t sequence = -1, rows = -1;
  expect(sextant_cache_create(&shape, &cache) == SEXTANT_OK, "cache");
  expect(sextant_cache_add(cache, 0, &sequence) == SEXTANT_OK, "sequence");
  expect_error(sextant_cache_append(cache, sequence, &of_key, &of_value),
               "k: expected magnitudes up to 65504, which float16 holds, but got 70000");
  expect(sextant_cache_rows(cache, sequence, &rows) == SEXTANT_OK && rows == 0, "no row");
  sextant_cache_destroy(cache);
}

/* Arrays without data, in each function that takes arrays. */
static void test_absent_data(void) {
  const sextant_cache_shape shape = {sizeof shape, kKeyHeads, kColumns, kColumns, 16, SEXTANT_FLOAT32};
  const int64_t positions[kRows] = {0};
  const sextant_array none = {0}, result = array(out, kHeads, kRows, kColumns);
  sextant_array x = array(NULL, kHeads, kRows, kColumns);
  SEXTANT_NEW(sextant_attention, a);
  SEXTANT_NEW(sextant_attention, bare);
  SEXTANT_NEW(sextant_decoding, d);
  SEXTANT_NEW(sextant_terms, terms);
  sextant_rope* rope = NULL;
  sextant_cache* cache = NULL;
  int64_t sequence = 0, farthest = 0, count = 0;
  expect(sextant_rope_create(kColumns, 10000, SEXTANT_HALF_SPLIT, 0, &rope) == SEXTANT_OK, "rope");
  expect_error(sextant_rope_rotate(rope, &x, positions, NULL), "x: expected data, but got NULL");
  expect_error(sextant_rope_rotate(rope, &none, positions, NULL), "x: expected an array, but got");
  x = array(NULL, kHeads, 0, kColumns); /* strides of heads and batch entries are 0 */
  expect(sextant_rope_rotate(rope, &x, positions, NULL) == SEXTANT_OK, "no rows need no data");
  x = array(NULL, kHeads, kRows, kColumns);

  a.q = a.k = a.v = array(q, kHeads, kRows, kColumns);
  expect_error(sextant_attend(&bare, &result, NULL, NULL),
               "q: expected an array, but got an absent");
  bare.q = bare.k = bare.v = x;
  expect_error(sextant_attend(&bare, &result, NULL, NULL), "q: expected data");
  bare.q = a.q;
  expect_error(sextant_attend(&bare, &result, NULL, NULL), "k: expected data");
  bare.k = a.k;
  expect_error(sextant_attend(&bare, &result, NULL, NULL), "v: expected data");
  expect_error(sextant_attend(&a, &x, NULL, NULL), "out: expected data");
  expect_error(sextant_attend(&a, &none, NULL, NULL), "out: expected an array");
  x = array(NULL, kHeads, kRows, 1);
  expect_error(sextant_attend(&a, &result, &x, NULL), "lse: expected data");
  a.terms = &terms;
  terms.bias.table = x;
  expect_error(sextant_attend(&a, &result, NULL, NULL),
               "terms.bias.table: expected data, or all sizes 0 (absent), but got NULL");
  bare.q = bare.k = array(NULL, kHeads, kRows, kColumns);
  expect(sextant_attention_diagonals(&bare, &farthest, &count) == SEXTANT_OK && count == kRows,
         "diagonals need no data");

  expect(sextant_cache_create(&shape, &cache) == SEXTANT_OK, "cache");
  expect(sextant_cache_add(cache, 0, &sequence) == SEXTANT_OK, "sequence");
  x = array(k, kKeyHeads, 1, kColumns);
  expect(sextant_cache_append(cache, sequence, &x, &x) == SEXTANT_OK, "append");
  x.data = NULL;
  a.k = array(k, kKeyHeads, 1, kColumns);
  expect_error(sextant_cache_append(cache, sequence, &x, &a.k), "k: expected data");
  expect_error(sextant_cache_append(cache, sequence, &a.k, &x), "v: expected data");
  d.sequences = &sequence;
  d.q = x;
  expect(sextant_decoding_diagonals(cache, &d, &farthest, &count) == SEXTANT_OK && count == 1,
         "diagonals of decoding need no data");
  expect_error(sextant_decode(cache, &d, &result, NULL, NULL), "q: expected data");
  d.q.data = q;
  expect_error(sextant_decode(cache, &d, &x, NULL, NULL), "out: expected data");
  x = array(NULL, kKeyHeads, 1, 1);
  expect_error(sextant_decode(cache, &d, &a.k, &x, NULL), "lse: expected data");
  d.terms = &terms;
  terms.bias.table = x;
  expect_error(sextant_decode(cache, &d, &a.k, NULL, NULL), "terms.bias.table: expected data");
  sextant_cache_destroy(cache);
  sextant_rope_destroy(rope);
}

/* Shapes and layouts are refused before memory is spent on them: these would need terabytes. */
static void test_sizes(void) {
  const int64_t large = (int64_t)1 << 40, lengths[2] = {large, 3};
  const sextant_array result = array(out, kHeads, kRows, kColumns);
  sextant_array wrong = result;
  SEXTANT_NEW(sextant_attention, a);
  sextant_pool* pool = NULL;
  int64_t farthest = 0, count = 0;
  a.q = array(q, kHeads, kRows, kColumns);
  a.k = a.v = array(k, kKeyHeads, kRows, kColumns);
  a.sequences = 2;
  expect_error(sextant_attend(&a, &result, NULL, NULL), "lengths: expected 2 lengths");
  a.lengths = lengths;
  expect_error(sextant_attend(&a, &result, NULL, NULL), "lengths: expected a sum of 19 queries");
  a.lengths = NULL;
  a.sequences = 0;
  a.window = -1;
  expect_error(sextant_attend(&a, &result, NULL, NULL), "window: expected at least 0, but got -1");
  a.window = 0;
  wrong.row_stride = 0;
  expect_error(sextant_attend(&a, &wrong, NULL, NULL), "out.row_stride: expected a stride other");
  a.k.rows = a.v.rows = 3;
  expect_error(sextant_attend(&a, &result, NULL, NULL), "q.rows: expected at most the 3 rows of k");
  a.q.rows = a.k.rows = a.v.rows = large;
  a.q.row_stride = a.k.row_stride = a.v.row_stride = 0;
  expect_error(sextant_attend(&a, &result, NULL, NULL), "out.rows: expected 1099511627776");
  expect(sextant_attention_diagonals(&a, &farthest, &count) == SEXTANT_OK, "diagonals");
  expect(farthest == large - 1 && count == large, "distances of a layout that has no plan");
  a.sees = SEXTANT_ALL_KEYS;
  expect(sextant_attention_diagonals(&a, &farthest, &count) == SEXTANT_OK, "diagonals");
  expect(farthest == large - 1 && count == 2 * large - 1, "distances without a causal mask");
  a.q = sextant_contiguous(q, SEXTANT_FLOAT32, 1, large, large, 1);
  expect_error(sextant_attend(&a, &result, NULL, NULL), "q: expected at most 2^60 elements");
  expect_error(sextant_pool_create(1000000, &pool), "threads: expected 1 to 4096, but got 1000000");
}

#ifdef WITH_CONFIG
static void test_json(const char* config) {
  const size_t bytes = strlen(config);
  char* json = NULL;
  expect(sextant_explain_json(config, bytes, 0, &json) == SEXTANT_OK, "explanation");
  expect(strstr(json, "\"schema\": 3") != NULL, "its schema");
  expect(strstr(json, "\"factor\": 4.0") != NULL, "its factor");
  sextant_free(json);
  json = NULL;
  expect_error(sextant_explain_json(config, bytes, -1, &json), "length");
  expect_error(sextant_explain_json("{", 1, 0, &json), "config.json");
  expect_error(sextant_explain_json(config, bytes, 0, NULL), "json");
  expect_error(sextant_convert_json(config, bytes, "gguf", &json), "to: expected hf5");
  expect(json == NULL, "a call that fails writes nothing");
  expect(sextant_convert_json(config, bytes, "llama.cpp", &json) == SEXTANT_OK, "conversion");
  expect(strstr(json, "--rope-scale 4") != NULL, "the flag of llama.cpp");
  sextant_free(json);
  sextant_free(NULL);
}

static void test_config(void) {
  static const char text[] =
      "{\"model_type\": \"llama\", \"head_dim\": 8, \"rope_theta\": 100.0,"
      " \"max_position_embeddings\": 4096, \"num_hidden_layers\": 2,"
      " \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4.0}}";
  float cos_table[4], sin_table[4];
  double scale = 0;
  sextant_rope* rope = NULL;
  int f;
  expect(sextant_rope_create_from_config(text, strlen(text), 1, 4096, &rope, &scale) == SEXTANT_OK,
         "config");
  expect(fabs(scale - 1 / sqrt(8)) < 1e-12, "scale");
  expect(sextant_rope_tables(rope, 4000, 1, cos_table, sin_table) == SEXTANT_OK, "tables");
  for (f = 0; f < 4; ++f)
    expect(fabs(cos_table[f] - cos(1000 * pow(100, -f / 4.0))) < 1e-7, "a linear stretch");
  sextant_rope_destroy(rope);
  expect_error(sextant_rope_create_from_config(text, strlen(text), 0, 0, &rope, NULL), "length");
  expect_error(sextant_rope_create_from_config(text, strlen(text), -1, 8, &rope, NULL), "layer");
  expect_error(sextant_rope_create_from_config("{", 1, 0, 8, &rope, NULL), "config.json");
  test_json(text);
}
#endif

int main(void) {
  fill();
  expect(sextant_error()[0] == 0, "no error at first");
  expect(strncmp(sextant_version(), "0.2.", 4) == 0 && SEXTANT_VERSION_NUMBER >= 200, "version");
  test_attention();
  test_t5();
  test_tables();
  test_frequencies();
  test_old_names();
  test_decoding();
  test_decode_plan(0);
  test_decode_plan(1);
  test_overflow();
  test_absent_data();
  test_sizes();
#ifdef WITH_CONFIG
  test_config();
#endif
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
