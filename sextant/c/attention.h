/* Attention in C: the score equation, without its gradients and dropout.

     s = tau(scale w[d] (<R q, R k> + q . A[d] + k . B[d])) + b[d] + r . A[d] + beta_i[d] + c_j
     o = sum_j e^s (v + C[d]) / (e^sink + sum_j e^s)

   d is the distance, or, with axes, one for each of them: A[d] and b[d] are then sums over the
   axes. With r, A meets r and not q. R is a rope, tau(x) = softcap tanh(x / softcap), and the rest
   are members of sextant_terms. */
#ifndef SEXTANT_C_ATTENTION_H
#define SEXTANT_C_ATTENTION_H

#include "sextant/c/rope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A table by distance: row rows[n] of `table` belongs to diagonal n, which has the distance
   farthest - n; see sextant_attention_diagonals(). */
typedef struct sextant_table {
  sextant_array table; /* float32 [1, 1 or query heads, R, columns]; absent: none */
  const int32_t* rows; /* [diagonals]; NULL: row n for diagonal n */
} sextant_table;

/* An axis of positions beside those of rows: one of a grid's, or of boxes on a page. Query row i of
   batch entry b has query_positions[b * query_batch_stride + i], and keys likewise (a stride of 0:
   the same for every entry). Distance n of the axis, the query's position minus the key's, is
   farthest - n, and there must be one for each query and key of a frame. */
typedef struct sextant_axis {
  const int64_t *query_positions, *key_positions;
  int64_t query_batch_stride, key_batch_stride;
  int64_t farthest, distances;
  /* [distances]: the row of axis_bias, and of axis_on_query, or -1; NULL: no row of that table. */
  const int32_t *bias_rows, *on_query_rows;
} sextant_axis;

typedef struct sextant_terms {
  size_t size;
  sextant_table weight;   /* w, one column; absent: 1 */
  sextant_table bias;     /* b, one column */
  sextant_table on_query; /* A, at most D columns, for the first columns of q */
  sextant_table on_key;   /* B, likewise */
  sextant_table on_value; /* C, Dv columns */
  /* beta: float32 [batch, query heads, queries, diagonals]: each query's own bias by distance. */
  sextant_array query_bias;
  sextant_array key_bias; /* c: float64 [batch, query heads, keys, 1] */
  /* [batch, query heads, queries, keys] with these strides in bytes; 0 hides a key. NULL: none. */
  const uint8_t* mask;
  int64_t mask_strides[4];
  double softcap;    /* of tau, above 0; 0: tau(x) = x */
  const float* sink; /* [query heads]; NULL: none */
  /* Further axes, which a plan keeps as it keeps the maps of tables. */
  const sextant_axis* axes;
  int64_t axis_count;
  sextant_array axis_bias;     /* rows of b of all axes: float32 [1, 1 or query heads, R, 1] */
  sextant_array axis_on_query; /* rows of A: float32 [1, 1 or query heads, R, columns] */
  /* r: float32 [batch, query heads, queries, columns of A], what A meets in place of q, unscaled.
   */
  sextant_array table_query;
  sextant_array query_sink; /* float32 [batch, query heads, queries, 1], in place of `sink` */
} sextant_terms;

typedef enum sextant_visibility {
  SEXTANT_CAUSAL = 0,   /* a query sees the keys at its position and before */
  SEXTANT_ALL_KEYS = 1, /* a query sees all keys */
  SEXTANT_CONTEXT = 2   /* a query sees `left` keys, the one at its position, and `right` keys */
} sextant_visibility;

/* ---- layouts of one's own ---- */

/* Rows [query_row, query_row + queries) of q have the positions from query_position on, and rows
   [key_row, key_row + keys) of k and v those from key_position on, in one batch entry or in every
   one (-1). A query is in at most one frame and sees keys of that frame only. */
typedef struct sextant_frame {
  int64_t batch, query_row, queries, query_position, key_row, keys, key_position;
} sextant_frame;

typedef struct sextant_range {
  int64_t first, last; /* key rows [first, last) */
} sextant_range;

/* The rotation of the queries, or of the keys, of a sweep. */
typedef struct sextant_side {
  const sextant_rope* rope; /* NULL: they are not rotated */
  /* The rotary position of a row, on each axis of the rope:
     positions[batch * batch_stride + axis * axis_stride + row * row_stride].
     NULL: that of its frame, on all axes. */
  const int64_t* positions;
  int64_t batch_stride, axis_stride, row_stride;
} sextant_side;

/* The keys that each query sees with one rotation. The ranges of a query in different sweeps are
   disjoint and share one softmax. */
typedef struct sextant_sweep {
  sextant_side query, key;
  const sextant_range* ranges; /* ranges[batch * batch_stride + query row], cut to the frame */
  int64_t batch_stride;        /* 0: the same for every batch entry */
} sextant_sweep;

/* Frames and sweeps in place of those that sextant_attention says. */
typedef struct sextant_layout {
  size_t size;
  const sextant_frame* frames;
  int64_t frame_count;
  const sextant_sweep* sweeps;
  int64_t sweep_count;
  /* Diagonal n of tables has the distance farthest - n. Both 0: there are no tables by distance. */
  int64_t farthest, diagonals;
  /* Pages of the caller, as in vLLM: k and v are [pages, key heads, page rows, columns], page rows
     is a multiple of 16, and row j of a batch entry is row j % page rows of page
     pages[batch * pages_stride + j / page rows]. NULL: there are none. */
  const int64_t* pages;
  int64_t pages_stride;
  int64_t keys; /* with pages: the number of key rows of an entry */
} sextant_layout;

/* ---- a call ---- */

typedef struct sextant_attention {
  size_t size;
  sextant_array q; /* [batch, query heads, queries, D] */
  sextant_array k; /* [batch, key heads, keys, D]; query heads are a multiple of key heads */
  sextant_array v; /* [batch, key heads, keys, Dv] */
  double scale;    /* of scores; 0: 1 / sqrt(D) */
  /* Key row n has position n. The queries are the last rows: the first query has position
     keys - queries, or first_query[0]. */
  const int64_t* first_query; /* NULL: the queries are the last rows */
  sextant_visibility sees;
  int64_t window;      /* with SEXTANT_CAUSAL: a query sees so many keys, itself included; 0: any */
  int64_t left, right; /* with SEXTANT_CONTEXT */
  /* Sequences of these lengths, one after the other in the rows, each from position 0 on; their sum
     is the number of queries, and of keys. NULL: one sequence. */
  const int64_t* lengths;
  int64_t sequences; /* the number of lengths; 0 if `lengths` is NULL */
  /* Padding: the numbers of queries and of keys of each batch entry, [batch], which are its first
     rows; queries behind them give zeros. NULL: all rows. */
  const int64_t* query_lengths;
  const int64_t* key_lengths;
  const sextant_rope* rope;     /* rotates q and k; NULL: they are not rotated */
  const sextant_terms* terms;   /* NULL: none */
  const sextant_layout* layout; /* NULL: that of the members above from first_query to rope, which
                                   are zero otherwise */
  /* For plans: the threads that will share a call, so that few queries over many keys are divided,
     too; 0: one. Results have the same bits for any number. */
  int threads;
} sextant_attention;

/* The distances of the tables of a call: farthest, farthest - 1, ..., `count` of them. Reads shapes
   and layout only: arrays need no data. */
SEXTANT_API sextant_status sextant_attention_diagonals(const sextant_attention* attention,
                                                       int64_t* farthest, int64_t* count);

/* out: [batch, query heads, queries, Dv]. lse: float32 [batch, query heads, queries, 1], the log of
   the sum of exp(score), or NULL; with a key_bias it is relative to the largest that the query
   sees. A query that sees no key gives zeros. Everything is computed in float32 or better, and each
   number rounded once to the type of `out`. */
SEXTANT_API sextant_status sextant_attend(const sextant_attention* attention,
                                          const sextant_array* out, const sextant_array* lse,
                                          const sextant_pool* pool);

/* ---- plans: one layout for many calls ---- */

/* A layout that is checked and prepared once, for all layers with the same shapes. It copies what
   it needs: arrays, layouts and ropes need not outlive the call that makes it. One call at a time
   may use a plan; others are refused. */
typedef struct sextant_plan sextant_plan;

/* Reads shapes, the layout, the maps of tables (`rows`), axes and whether there is a table on_key;
   data is not read. backend: "cpu" (NULL), "cpu-bf16", "cpu-bf16x3" or "reference". */
SEXTANT_API sextant_status sextant_plan_create(const sextant_attention* attention,
                                               const char* backend, sextant_plan** plan);
SEXTANT_API void sextant_plan_destroy(sextant_plan* plan);
/* Takes another layout, in the memory of those before: a plan that is not larger than an earlier
   one allocates nothing. If it fails, the plan serves no call until it is renewed. */
SEXTANT_API sextant_status sextant_plan_renew(sextant_plan* plan,
                                              const sextant_attention* attention);
/* As sextant_attend(), with the layout, the ropes and the maps of the plan: of `attention` q, k, v,
   scale and terms are read. Shapes must be those of the plan, and so must sees, window, left, right
   and rope where they are not zero. From the second call of a
   plan on nothing is allocated, except for ropes with growth. */
SEXTANT_API sextant_status sextant_plan_attend(sextant_plan* plan,
                                               const sextant_attention* attention,
                                               const sextant_array* out, const sextant_array* lse,
                                               const sextant_pool* pool);
/* The same for the threads of a caller who has called them already, as those of an operation of
   ggml: each of `nth` threads (1 to 4096) makes the same call with its own `ith`, 0 to nth - 1.
   They share the work, and one that comes late finds less of it. The result is complete when all
   have returned. All get the same status. */
SEXTANT_API sextant_status sextant_plan_attend_share(sextant_plan* plan,
                                                     const sextant_attention* attention,
                                                     const sextant_array* out,
                                                     const sextant_array* lse, int ith, int nth);

/* ---- terms that many models have; `terms` has its size, and other members stay ---- */

/* ALiBi's slopes, [heads]; the bias at distance d is -slopes[h] |d|. The paper has max_bias 8. */
SEXTANT_API sextant_status sextant_alibi_slopes(int64_t heads, double max_bias, double* slopes);
/* ALiBi's bias (Press et al. 2021), in the caller's memory, [heads, count]. */
SEXTANT_API sextant_status sextant_alibi_terms(int64_t heads, double max_bias, int64_t farthest,
                                               int64_t count, float* bias, sextant_terms* terms);

/* T5's bucket of each diagonal, [count]: the rows of a table with a row for each bucket. T5 has 32
   buckets and max_distance 128; its encoder is bidirectional (not 0). */
SEXTANT_API sextant_status sextant_t5_rows(int64_t buckets, int64_t max_distance, int bidirectional,
                                           int64_t farthest, int64_t count, int32_t* rows);

/* Transformer-XL, and Conformers with its relative attention (NeMo's and others; Dai et al. 2019):
   scores scale ((q + u) . k + (q + v) . r[d]). The call adds u to q, and sets the tables on_query
   to r and bias to scale (v - u) . r[d]. u, v: [heads, D], pos_bias_u and pos_bias_v. r: float32
   [1, 1 or heads, count, D], the projected position encoding with a row for each diagonal, farthest
   first, as Transformer-XL (klen - 1 down to 0) and NeMo (T - 1 down to -(T - 1)) have it. scale:
   0: 1 / sqrt(D). q: [batch, heads, rows, D], written. bias: memory of the caller, [heads, count].
 */
SEXTANT_API sextant_status sextant_conformer_terms(const float* u, const float* v,
                                                   const sextant_array* r, double scale,
                                                   const sextant_array* q, float* bias,
                                                   sextant_terms* terms);

/* DeBERTa's disentangled attention (He et al. 2020; v2 and v3 with buckets): scores
   scale (q . k + q . position_keys[row(d)] + k . position_queries[row(d)]), with the scale
   1 / sqrt(D (1 + the number of tables)), which the caller sets.
   position_keys (c2p) and position_queries (p2c): float32 [1, 1 or heads, R, D], the projected rows
   of rel_embeddings; NULL: without that term. R is 2 buckets, or with buckets = 0 (v1)
   2 max_positions. rows: memory of the caller, [count], which the terms point to. */
SEXTANT_API sextant_status sextant_deberta_terms(const sextant_array* position_keys,
                                                 const sextant_array* position_queries,
                                                 int64_t buckets, int64_t max_positions,
                                                 int64_t farthest, int64_t count, int32_t* rows,
                                                 sextant_terms* terms);

/* A deprecated name, which the next version does not have. */
#define sextant_bias sextant_table

#ifdef __cplusplus
}
#endif

#endif
