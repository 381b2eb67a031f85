/* The cache of keys and values, and decoding, in C. */
#ifndef SEXTANT_C_CACHE_H
#define SEXTANT_C_CACHE_H

#include "sextant/c/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys and values of growing sequences, of one layer. Keys are stored unrotated, and rotated when
   they are read; rotated keys (sextant_cache_add_rotated_keys()) once. Several threads may read a
   cache at once, by the functions that have it as const, while none changes it. Libraries that are
   built without NDEBUG refuse a change beside another call. */
typedef struct sextant_cache sextant_cache;

typedef struct sextant_cache_shape {
  size_t size;
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
/* Copies rows from `first` on into k and v, [1, key heads, rows, columns] in any type of arrays,
   with keys as they are stored. */
SEXTANT_API sextant_status sextant_cache_read(const sextant_cache* cache, int64_t sequence,
                                              int64_t first, const sextant_array* k,
                                              const sextant_array* v);
/* The pages that sequences use, and the bytes of all pages, free ones included. */
SEXTANT_API sextant_status sextant_cache_memory(const sextant_cache* cache, int64_t* pages,
                                                int64_t* bytes);
/* Writes a sequence to a file, with checksums, under a temporary name at first: a failure leaves an
   older file as it was. */
SEXTANT_API sextant_status sextant_cache_save(const sextant_cache* cache, int64_t sequence,
                                              const char* path);
/* Adds the sequence of a file to a cache of the same sizes and type. */
SEXTANT_API sextant_status sextant_cache_load(sextant_cache* cache, const char* path,
                                              int64_t* sequence);

/* Attention of the last rows of some sequences over their cached rows, causal. */
typedef struct sextant_decoding {
  size_t size;
  /* [sequences, query heads, queries, D]: the queries are the last rows of their sequences, whose
     keys and values have been appended. */
  sextant_array q;
  const int64_t* sequences; /* [q.batch] */
  /* [q.batch], at most q.rows: how many rows of each sequence are queries, the first rows of its
     entry of q. Other rows see no key. NULL: q.rows of each. */
  const int64_t* queries;
  double scale;             /* 0: 1 / sqrt(D) */
  int64_t window;           /* a query sees so many keys, its own and those before; 0: all before */
  const sextant_rope* rope; /* or NULL */
  /* Or NULL. mask and key_bias have a column or row for each row of the longest sequence. */
  const sextant_terms* terms;
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
  int64_t queries;          /* rows of q: the most queries of a sequence in a step */
  int64_t most_rows;        /* the most that a sequence will have */
  int64_t window;           /* as in sextant_decoding */
  const sextant_rope* rope; /* or NULL */
  /* Read are the maps of tables (`rows`), which are copied, and whether there is a table on_key; no
     data. Maps, and tables without one, have a row for each distance below most_rows, or below
     `window` if there is one that is less, farthest first. NULL: no maps, and no on_key. */
  const sextant_terms* terms;
  const sextant_pool* pool; /* must outlive the plan; or NULL */
  int threads; /* that share a call, the nth of sextant_decode_plan_attend_share(); 0: the pool's */
} sextant_decode_plan_options;

SEXTANT_API sextant_status sextant_decode_plan_create(const sextant_cache* cache,
                                                      const sextant_decode_plan_options* options,
                                                      sextant_decode_plan** plan);
SEXTANT_API void sextant_decode_plan_destroy(sextant_decode_plan* plan);

/* Takes the rows that the sequences have now: once for each token, after the rows were appended to
   the first layer's cache. queries: [count], as in sextant_decoding; or NULL. */
SEXTANT_API sextant_status sextant_decode_plan_step(sextant_decode_plan* plan,
                                                    const sextant_cache* cache,
                                                    const int64_t* queries);

typedef struct sextant_decode_plan_call {
  size_t size;
  sextant_array q; /* [count, query heads, queries, D] */
  double scale;    /* 0: 1 / sqrt(D) */
  /* Or NULL; neither mask nor key_bias. Maps of tables are those of the options: `rows` is not
     read, and refused where the options have no map. */
  const sextant_terms* terms;
} sextant_decode_plan_call;

/* Attends over a layer's cache, which was filled by the same calls as that of the step. One call at
   a time may use a plan; others are refused. */
SEXTANT_API sextant_status sextant_decode_plan_attend(sextant_decode_plan* plan,
                                                      const sextant_cache* cache,
                                                      const sextant_decode_plan_call* call,
                                                      const sextant_array* out,
                                                      const sextant_array* lse);
/* The same for each of the caller's `nth` threads, as sextant_plan_attend_share(). */
SEXTANT_API sextant_status sextant_decode_plan_attend_share(
    sextant_decode_plan* plan, const sextant_cache* cache, const sextant_decode_plan_call* call,
    const sextant_array* out, const sextant_array* lse, int ith, int nth);

/* Deprecated names, which the next version does not have. */
#define sextant_cache_add_rotated sextant_cache_add_rotated_keys
#define sextant_decoder sextant_decode_plan
#define sextant_decoder_attend sextant_decode_plan_attend
#define sextant_decoder_call sextant_decode_plan_call
#define sextant_decoder_create sextant_decode_plan_create
#define sextant_decoder_destroy sextant_decode_plan_destroy
#define sextant_decoder_options sextant_decode_plan_options
#define sextant_decoder_step(plan, cache) sextant_decode_plan_step(plan, cache, NULL)

#ifdef __cplusplus
}
#endif

#endif
