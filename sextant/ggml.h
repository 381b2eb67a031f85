/* Sextant's attention as an operation of a ggml graph, on ggml's threads and memory. C99 and C++;
   included after ggml.h. Tensors are float32, float16 or bfloat16 and read by their strides.

     SEXTANT_NEW(sextant_ggml, op);                    // kept until its graphs are computed
     op.attention.sees = SEXTANT_ALL_KEYS;             // members as for sextant_plan_create()
     struct ggml_tensor* out = sextant_ggml_attention(ctx, q, k, v, &op);
     if (!out) report(sextant_error());
     ...
     sextant_plan_destroy(op.plan);

   The layers of a model have one plan: those after the first take it in op.plan, if their shapes
   and layout are the same; others are refused. As one call at a time may use a plan, so may one
   graph. */
#ifndef SEXTANT_GGML_H
#define SEXTANT_GGML_H

#ifndef GGML_FILE_MAGIC
#error "sextant/ggml.h: expected ggml.h to be included before it"
#endif

#include <math.h>
#include <string.h>

#include "sextant/c/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sextant_ggml {
  size_t size;
  sextant_attention attention; /* its layout, rope, scale and terms; q, k and v are tensors */
  /* Tables of the terms that are tensors, float32 [columns, rows, 1 or query heads], in place of
     those of attention.terms, whose `rows` stay. NULL: as attention.terms say. */
  struct ggml_tensor *bias, *on_query, *on_key, *on_value;
  sextant_plan* plan; /* NULL: sextant_ggml_attention() makes it. The caller destroys it. */
} sextant_ggml;

/* A tensor [columns, rows, heads, batch]. */
static inline sextant_array sextant_ggml_array(const struct ggml_tensor* t) {
  const int64_t size = (int64_t)ggml_type_size(t->type);
  sextant_array a;
  a.data = t->data;
  a.batch = t->ne[3], a.heads = t->ne[2], a.rows = t->ne[1], a.columns = t->ne[0];
  a.batch_stride = (int64_t)t->nb[3] / size, a.head_stride = (int64_t)t->nb[2] / size;
  a.row_stride = (int64_t)t->nb[1] / size, a.column_stride = (int64_t)t->nb[0] / size;
  a.dtype = t->type == GGML_TYPE_F32    ? SEXTANT_FLOAT32
            : t->type == GGML_TYPE_F16  ? SEXTANT_FLOAT16
            : t->type == GGML_TYPE_BF16 ? SEXTANT_BFLOAT16
                                        : (sextant_dtype)-1; /* refused by name */
  return a;
}

/* The call of an operation over its sources: q, k, v and the tables that are tensors. */
static inline void sextant_ggml_call(const sextant_ggml* op, struct ggml_tensor* const* sources,
                                     sextant_attention* call, sextant_terms* terms) {
  *call = op->attention;
  memset(terms, 0, sizeof *terms);
  if (call->terms) *terms = *call->terms;
  call->size = sizeof *call, terms->size = sizeof *terms;
  call->terms = terms;
  call->q = sextant_ggml_array(*sources++);
  call->k = sextant_ggml_array(*sources++);
  call->v = sextant_ggml_array(*sources++);
  if (op->bias) terms->bias.table = sextant_ggml_array(*sources++);
  if (op->on_query) terms->on_query.table = sextant_ggml_array(*sources++);
  if (op->on_key) terms->on_key.table = sextant_ggml_array(*sources++);
  if (op->on_value) terms->on_value.table = sextant_ggml_array(*sources++);
}

static inline void sextant_ggml_compute(struct ggml_tensor* result, int ith, int nth, void* user) {
  const sextant_ggml* const op = (const sextant_ggml*)user;
  const sextant_array rows = sextant_ggml_array(result); /* [batch, queries, heads, Dv] */
  sextant_array out = rows;
  sextant_attention call;
  sextant_terms terms;
  out.heads = rows.rows, out.head_stride = rows.row_stride;
  out.rows = rows.heads, out.row_stride = rows.head_stride;
  sextant_ggml_call(op, result->src, &call, &terms);
  if (sextant_plan_attend_share(op->plan, &call, &out, NULL, ith, nth) != SEXTANT_OK)
    GGML_ABORT("sextant: %s", sextant_error());
}

/* Attention of q [D, queries, heads, batch] over k [D, keys, key heads, batch] and v [Dv, keys, key
   heads, batch]: float32 [Dv, heads, queries, batch], as of ggml_flash_attn_ext. NULL if shapes,
   types or the layout do not fit; sextant_error() says why. */
static inline struct ggml_tensor* sextant_ggml_attention(struct ggml_context* ctx,
                                                         struct ggml_tensor* q,
                                                         struct ggml_tensor* k,
                                                         struct ggml_tensor* v, sextant_ggml* op) {
  struct ggml_tensor* sources[] = {q, k, v, NULL, NULL, NULL, NULL};
  int count = 3;
  sextant_attention call;
  sextant_terms terms;
  if (op->size != sizeof *op) {
    sextant_fail(SEXTANT_BAD_ARGUMENT,
                 "ggml: size: expected sizeof(sextant_ggml), but got another");
    return NULL;
  }
  if (op->bias) sources[count++] = op->bias;
  if (op->on_query) sources[count++] = op->on_query;
  if (op->on_key) sources[count++] = op->on_key;
  if (op->on_value) sources[count++] = op->on_value;
  sextant_ggml_call(op, sources, &call, &terms);
  if (!op->plan && sextant_plan_create(&call, NULL, &op->plan) != SEXTANT_OK) return NULL;
  return ggml_custom_4d(ctx, GGML_TYPE_F32, v->ne[0], q->ne[2], q->ne[1], q->ne[3], sources, count,
                        sextant_ggml_compute, GGML_N_TASKS_MAX, op);
}

/* The same with Transformer-XL's terms, as in Conformers (sextant_conformer_terms): u and v_bias
   float32 [D, heads], r float32 [D, distances, heads]: the projected position encoding, farthest
   distance first. Sets op->on_query and op->bias. */
static inline struct ggml_tensor* sextant_ggml_conformer(
    struct ggml_context* ctx, struct ggml_tensor* q, struct ggml_tensor* k, struct ggml_tensor* v,
    struct ggml_tensor* u, struct ggml_tensor* v_bias, struct ggml_tensor* r, sextant_ggml* op) {
  struct ggml_tensor* const between =
      ggml_reshape_3d(ctx, ggml_sub(ctx, v_bias, u), u->ne[0], 1, u->ne[1]);
  struct ggml_tensor* const bias = ggml_mul_mat(ctx, r, between); /* [distances, 1, heads] */
  const double scale = op->attention.scale;
  op->on_query = r;
  op->bias = ggml_reshape_3d(
      ctx, ggml_scale(ctx, bias, (float)(scale != 0 ? scale : 1 / sqrt((double)q->ne[0]))), 1,
      r->ne[1], u->ne[1]);
  q = ggml_add(ctx, q, ggml_reshape_3d(ctx, u, u->ne[0], 1, u->ne[1]));
  return sextant_ggml_attention(ctx, q, k, v, op);
}

#ifdef __cplusplus
}
#endif

#endif
