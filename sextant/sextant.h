/* Sextant's C API: exact rotary tables, attention, and decoding over a cache of keys and values,
   for C99 and every language that can call C. sextant_config.h reads a model's config.json.

   Arrays are [batch, heads, rows, columns] by strides, in the caller's memory, and are not copied.
   A distance is query position minus key position, positive for keys in the past.

   Functions that can fail return a sextant_status; then outputs are not written, and
   sextant_error() is a sentence that names the field, the expected value and the value. Objects
   are made by ..._create() and freed by ..._destroy(), which accepts NULL. Different threads may
   use different objects, and share pools and rotations. */
#ifndef SEXTANT_SEXTANT_H
#define SEXTANT_SEXTANT_H

#include <stdint.h>

#include "sextant/base/export.h"
#include "sextant/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sextant_status {
  SEXTANT_OK = 0,
  SEXTANT_BAD_ARGUMENT = 1, /* an argument, or a configuration, is wrong */
  SEXTANT_NO_MEMORY = 2,
  SEXTANT_INTERNAL = 3 /* a defect of Sextant, or a thread that could not be started */
} sextant_status;

/* The message of the calling thread's last call that failed, until the next one; "" at first. */
SEXTANT_API const char* sextant_error(void);
/* Sets that message and returns the status, for libraries that add functions to this API. */
SEXTANT_API sextant_status sextant_fail(sextant_status status, const char* message);

/* The version of the library that runs: "0.2.0". */
SEXTANT_API const char* sextant_version(void);

/* ---- arrays ---- */

typedef enum sextant_dtype {
  SEXTANT_FLOAT32 = 0,
  SEXTANT_BFLOAT16 = 1,
  SEXTANT_FLOAT16 = 2,
  SEXTANT_INT8 = 3 /* of caches only */
} sextant_dtype;

/* Strides are counted in elements, and may have any sign or order. They have no default, so
   sextant_contiguous() should fill them in: with stride 0 all elements along a dimension are one,
   which outputs with more than one refuse. An array that is all zero is absent; one that has
   elements and no data is refused. Sizes have a product of at most 2^60. Inputs are not written. */
typedef struct sextant_array {
  void* data;
  int64_t batch, heads, rows, columns;
  int64_t batch_stride, head_stride, row_stride, column_stride;
  sextant_dtype dtype;
} sextant_array;

/* An array whose elements lie one after the other, the columns of a row first. Functions that take
   it check the sizes. */
SEXTANT_API sextant_array sextant_contiguous(const void* data, sextant_dtype dtype, int64_t batch,
                                             int64_t heads, int64_t rows, int64_t columns);

/* ---- threads ---- */

/* Threads that run the tasks of a call, 1 to 4096. Where a pool is NULL, the calling thread runs
   them. */
typedef struct sextant_pool sextant_pool;
SEXTANT_API sextant_status sextant_pool_create(int threads, sextant_pool** pool);
SEXTANT_API void sextant_pool_destroy(sextant_pool* pool);

/* ---- rotary positions ---- */

/* The frequency of each rotated pair of columns, held exactly, and a gain. */
typedef struct sextant_rope sextant_rope;

/* The columns of pair f, of R rotated columns that begin at first_column. */
typedef enum sextant_pairing {
  SEXTANT_HALF_SPLIT = 0, /* (f, f + R/2): GPT-NeoX, Llama in Hugging Face's files */
  SEXTANT_INTERLEAVED = 1 /* (2f, 2f + 1): GPT-J, Llama in Meta's files */
} sextant_pairing;

/* RoPE with the frequencies base^(-2f/columns), exactly. columns: R, even. */
SEXTANT_API sextant_status sextant_rope_create(int64_t columns, double base,
                                               sextant_pairing pairing, int64_t first_column,
                                               sextant_rope** rope);
/* The same with given frequencies, [pairs] in radians per position, and a gain on every rotated
   column of queries and keys (YaRN's; otherwise 1). */
SEXTANT_API sextant_status sextant_rope_create_from_frequencies(const double* frequencies,
                                                                int64_t pairs, double gain,
                                                                sextant_pairing pairing,
                                                                int64_t first_column,
                                                                sextant_rope** rope);
SEXTANT_API void sextant_rope_destroy(sextant_rope* rope);

SEXTANT_API int64_t sextant_rope_pairs(const sextant_rope* rope); /* 0 for NULL */
SEXTANT_API double sextant_rope_gain(const sextant_rope* rope);   /* 1 for NULL */
/* The columns of one pair. */
SEXTANT_API sextant_status sextant_rope_columns(const sextant_rope* rope, int64_t pair,
                                                int64_t* first, int64_t* second);
/* cos and sin of positions first_position, first_position + 1, ..., each [count, pairs], within
   0.53 ulp. The gain is not in them. */
SEXTANT_API sextant_status sextant_rope_tables(const sextant_rope* rope, int64_t first_position,
                                               int64_t count, float* cos, float* sin);
/* Rotates float32 rows in place, row n of each batch entry at positions[n], and multiplies them by
   the gain. */
SEXTANT_API sextant_status sextant_rope_rotate(const sextant_rope* rope, const sextant_array* x,
                                               const int64_t* positions, const sextant_pool* pool);

/* ---- attention ---- */

typedef enum sextant_visibility {
  SEXTANT_CAUSAL = 0,  /* a query sees the keys at its position and before */
  SEXTANT_ALL_KEYS = 1 /* a query sees all keys */
} sextant_visibility;

/* A bias by distance: row rows[n] of `table` is added to all scores of diagonal n. Diagonal n has
   distance farthest - n; see sextant_attention_diagonals(). */
typedef struct sextant_bias {
  sextant_array table; /* float32 [1, 1 or query heads, R, 1]; absent: no bias */
  const int32_t* rows; /* [diagonals]; NULL: row n for diagonal n */
} sextant_bias;

/* One call. All members that are zero have their defaults, except q, k, v and the strides of
   arrays. */
typedef struct sextant_attention {
  sextant_array q; /* [batch, query heads, queries, D] */
  sextant_array k; /* [batch, key heads, keys, D]; query heads are a multiple of key heads */
  sextant_array v; /* [batch, key heads, keys, Dv] */
  double scale;    /* of scores; 0: 1 / sqrt(D) */
  /* Key row n has position n, and the queries are the last rows: the first query has position
     keys - queries. */
  sextant_visibility sees;
  int64_t window; /* with SEXTANT_CAUSAL: a query sees so many keys, itself included; 0: any */
  /* Causal sequences of these lengths, one after the other in the rows, each from position 0 on;
     their sum is the number of queries, and of keys. NULL: one sequence. */
  const int64_t* lengths;
  int64_t sequences;        /* the number of lengths; 0 if `lengths` is NULL */
  const sextant_rope* rope; /* rotates q and k; NULL: they are not rotated */
  sextant_bias bias;
  const float* sink; /* [query heads], one more score per head in the denominator; or NULL */
} sextant_attention;

/* The distances that the queries of a call see: farthest, farthest - 1, ..., `count` of them. Reads
   shapes and layout only: arrays need no data. */
SEXTANT_API sextant_status sextant_attention_diagonals(const sextant_attention* attention,
                                                       int64_t* farthest, int64_t* count);

/* out: [batch, query heads, queries, Dv]. lse: float32 [batch, query heads, queries, 1], the log of
   the sum of exp(score), or NULL. A query that sees no key gives zeros. Everything is computed in
   float32 or better, and each number rounded once to the type of `out`. */
SEXTANT_API sextant_status sextant_attend(const sextant_attention* attention,
                                          const sextant_array* out, const sextant_array* lse,
                                          const sextant_pool* pool);

/* ALiBi's slopes, [heads]; the bias at distance d is -slopes[h] d. The paper has max_bias 8. */
SEXTANT_API sextant_status sextant_alibi_slopes(int64_t heads, double max_bias, double* slopes);
/* T5's bucket of each diagonal, [count]: the rows of a sextant_bias whose table has a row for each
   bucket. T5 has 32 buckets and max_distance 128; its encoder is bidirectional (not 0). */
SEXTANT_API sextant_status sextant_t5_rows(int64_t buckets, int64_t max_distance, int bidirectional,
                                           int64_t farthest, int64_t count, int32_t* rows);

/* ---- decoding ---- */

/* Keys and values of growing sequences, of one layer. Keys are stored unrotated, and rotated when
   they are read; rotated keys (sextant_cache_add_rotated_keys()) once. One thread at a time may
   use a cache. */
typedef struct sextant_cache sextant_cache;

typedef struct sextant_cache_shape {
  int64_t key_heads, key_columns, value_columns;
  int64_t page_rows; /* a multiple of 16; 0: 256 */
  /* In which keys and values are stored. SEXTANT_INT8: in bfloat16, until a page is full and is
     rounded to integers, with a scale for each column of keys and each row of values. */
  sextant_dtype dtype;
} sextant_cache_shape;

SEXTANT_API sextant_status sextant_cache_create(const sextant_cache_shape* shape,
                                                sextant_cache** cache);
SEXTANT_API void sextant_cache_destroy(sextant_cache* cache);

/* Adds an empty sequence, whose first row has this position. */
SEXTANT_API sextant_status sextant_cache_add(sextant_cache* cache, int64_t first_position,
                                             int64_t* sequence);
/* The same with rotated keys, each rotated once at its position: decoding then rotates queries
   alone, and needs this rope. Another rope, or no rope, is refused. */
SEXTANT_API sextant_status sextant_cache_add_rotated_keys(sextant_cache* cache,
                                                          int64_t first_position,
                                                          const sextant_rope* rope,
                                                          int64_t* sequence);
/* Takes memory now, so that appending allocates nothing until the sequence has this many rows. */
SEXTANT_API sextant_status sextant_cache_reserve(sextant_cache* cache, int64_t sequence,
                                                 int64_t rows);
/* Adds a sequence that shares the first rows of another one, without a copy. */
SEXTANT_API sextant_status sextant_cache_fork(sextant_cache* cache, int64_t sequence, int64_t rows,
                                              int64_t* fork);
SEXTANT_API sextant_status sextant_cache_remove(sextant_cache* cache, int64_t sequence);
/* Appends the rows of k and v, [1, key heads, rows, columns]; keys are not rotated. A finite number
   that the cache's type would round to infinity is refused, and nothing is appended. */
SEXTANT_API sextant_status sextant_cache_append(sextant_cache* cache, int64_t sequence,
                                                const sextant_array* k, const sextant_array* v);
/* Keeps the first rows. */
SEXTANT_API sextant_status sextant_cache_truncate(sextant_cache* cache, int64_t sequence,
                                                  int64_t rows);
/* Removes rows [first, first + count); later rows move up to the positions that become free. */
SEXTANT_API sextant_status sextant_cache_drop(sextant_cache* cache, int64_t sequence, int64_t first,
                                              int64_t count);
SEXTANT_API sextant_status sextant_cache_rows(const sextant_cache* cache, int64_t sequence,
                                              int64_t* rows);

/* Attention of the last rows of some sequences over their cached rows, causal. */
typedef struct sextant_decoding {
  /* [sequences, query heads, queries, D]: the queries are the last rows of their sequences, whose
     keys and values have been appended. */
  sextant_array q;
  const int64_t* sequences; /* [q.batch] */
  double scale;             /* 0: 1 / sqrt(D) */
  const sextant_rope* rope; /* or NULL */
  sextant_bias bias;
  const float* sink; /* [query heads], or NULL */
} sextant_decoding;

/* As sextant_attention_diagonals() and sextant_attend(). */
SEXTANT_API sextant_status sextant_decoding_diagonals(const sextant_cache* cache,
                                                      const sextant_decoding* decoding,
                                                      int64_t* farthest, int64_t* count);
SEXTANT_API sextant_status sextant_decode(const sextant_cache* cache,
                                          const sextant_decoding* decoding,
                                          const sextant_array* out, const sextant_array* lse,
                                          const sextant_pool* pool);

/* Decoding in memory that is taken once: after the first step, steps allocate nothing. */
typedef struct sextant_decode_plan sextant_decode_plan;

typedef struct sextant_decode_plan_options {
  const int64_t* sequences; /* [count], of every cache that the plan is used with */
  int64_t count;
  int64_t heads;            /* of queries */
  int64_t queries;          /* the last rows of each sequence */
  int64_t most_rows;        /* the most that a sequence will have */
  const sextant_rope* rope; /* or NULL */
  /* [most_rows], the row of the bias for each diagonal, farthest (most_rows - 1) first; NULL: the
     bias has a row for each diagonal. */
  const int32_t* bias_rows;
  const sextant_pool* pool; /* must outlive the plan; or NULL */
} sextant_decode_plan_options;

SEXTANT_API sextant_status sextant_decode_plan_create(const sextant_cache* cache,
                                                      const sextant_decode_plan_options* options,
                                                      sextant_decode_plan** plan);
SEXTANT_API void sextant_decode_plan_destroy(sextant_decode_plan* plan);

/* Takes the rows that the sequences have now: once for each token, after the rows were appended to
   the first layer's cache. */
SEXTANT_API sextant_status sextant_decode_plan_step(sextant_decode_plan* plan,
                                                    const sextant_cache* cache);

typedef struct sextant_decode_plan_call {
  sextant_array q;    /* [count, query heads, queries, D] */
  double scale;       /* 0: 1 / sqrt(D) */
  sextant_array bias; /* float32 [1, 1 or query heads, rows, 1]; absent: no bias */
  const float* sink;  /* [query heads], or NULL */
} sextant_decode_plan_call;

/* Attends over a layer's cache, which was filled by the same calls as that of the step. */
SEXTANT_API sextant_status sextant_decode_plan_attend(sextant_decode_plan* plan,
                                                      const sextant_cache* cache,
                                                      const sextant_decode_plan_call* call,
                                                      const sextant_array* out,
                                                      const sextant_array* lse);

/* Deprecated names, which the next version does not have. */
#define sextant_cache_add_rotated sextant_cache_add_rotated_keys
#define sextant_decoder sextant_decode_plan
#define sextant_decoder_attend sextant_decode_plan_attend
#define sextant_decoder_call sextant_decode_plan_call
#define sextant_decoder_create sextant_decode_plan_create
#define sextant_decoder_destroy sextant_decode_plan_destroy
#define sextant_decoder_options sextant_decode_plan_options
#define sextant_decoder_step sextant_decode_plan_step
#if defined(__GNUC__)
__attribute__((deprecated("its name is sextant_rope_create_from_frequencies now")))
#endif
static inline sextant_status
sextant_rope_create_from_speeds(const double* speeds, int64_t pairs, double gain,
                                sextant_pairing pairing, int64_t first_column,
                                sextant_rope** rope) {
  return sextant_rope_create_from_frequencies(speeds, pairs, gain, pairing, first_column, rope);
}

#ifdef __cplusplus
}
#endif

#endif
