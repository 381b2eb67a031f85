/* Attention in C. */
#ifndef SEXTANT_C_ATTENTION_H
#define SEXTANT_C_ATTENTION_H

#include "sextant/c/rope.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
