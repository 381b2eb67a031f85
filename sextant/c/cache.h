/* The cache of keys and values, and decoding, in C. */
#ifndef SEXTANT_C_CACHE_H
#define SEXTANT_C_CACHE_H

#include "sextant/c/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

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
  size_t size;
  /* [sequences, query heads, queries, D]: the queries are the last rows of their sequences, whose
     keys and values have been appended. */
  sextant_array q;
  const int64_t* sequences;   /* [q.batch] */
  double scale;               /* 0: 1 / sqrt(D) */
  const sextant_rope* rope;   /* or NULL */
  const sextant_terms* terms; /* all but mask and key_bias; or NULL */
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
  size_t size;
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
  size_t size;
  sextant_array q; /* [count, query heads, queries, D] */
  double scale;    /* 0: 1 / sqrt(D) */
  /* All but mask and key_bias; or NULL. Maps of tables are those of the options: `rows` is NULL. */
  const sextant_terms* terms;
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

#ifdef __cplusplus
}
#endif

#endif
