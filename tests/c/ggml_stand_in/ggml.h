/* The part of ggml.h that sextant/ggml.h uses, for tests where ggml is not installed
   (`./check --ggml` has the real one). C99 and C++. An operation runs by stand_in_compute(). */
#ifndef GGML_STAND_IN
#define GGML_STAND_IN

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GGML_FILE_MAGIC 0x67676d6c
#define GGML_N_TASKS_MAX (-1)
#define GGML_ABORT(...) (fprintf(stderr, __VA_ARGS__), abort())

enum ggml_type { GGML_TYPE_F32 = 0, GGML_TYPE_F16 = 1, GGML_TYPE_Q8_0 = 8, GGML_TYPE_BF16 = 30 };

struct ggml_tensor;
typedef void (*ggml_custom_op_t)(struct ggml_tensor* dst, int ith, int nth, void* userdata);

struct ggml_tensor {
  enum ggml_type type;
  int64_t ne[4];
  size_t nb[4];
  struct ggml_tensor* src[10];
  void* data;
  ggml_custom_op_t fun;
  void* userdata;
};

struct ggml_context {
  struct ggml_tensor tensors[64];
  int count;
};

static inline size_t ggml_type_size(enum ggml_type type) {
  return type == GGML_TYPE_F32 ? 4 : type == GGML_TYPE_Q8_0 ? 34 : 2;
}

static inline struct ggml_tensor* ggml_new_tensor_4d(struct ggml_context* ctx, enum ggml_type type,
                                                     int64_t ne0, int64_t ne1, int64_t ne2,
                                                     int64_t ne3) {
  struct ggml_tensor* t = &ctx->tensors[ctx->count++];
  memset(t, 0, sizeof *t);
  t->type = type;
  t->ne[0] = ne0, t->ne[1] = ne1, t->ne[2] = ne2, t->ne[3] = ne3;
  t->nb[0] = ggml_type_size(type);
  t->nb[1] = t->nb[0] * (size_t)ne0, t->nb[2] = t->nb[1] * (size_t)ne1;
  t->nb[3] = t->nb[2] * (size_t)ne2;
  return t;
}

/* Dimension n of `a` becomes dimension axis_n. */
static inline struct ggml_tensor* ggml_permute(struct ggml_context* ctx, struct ggml_tensor* a,
                                               int axis0, int axis1, int axis2, int axis3) {
  const int axes[4] = {axis0, axis1, axis2, axis3};
  int n;
  struct ggml_tensor* t = ggml_new_tensor_4d(ctx, a->type, 1, 1, 1, 1);
  t->data = a->data;
  for (n = 0; n < 4; ++n) t->ne[axes[n]] = a->ne[n], t->nb[axes[n]] = a->nb[n];
  return t;
}

static inline struct ggml_tensor* ggml_custom_4d(struct ggml_context* ctx, enum ggml_type type,
                                                 int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3,
                                                 struct ggml_tensor** args, int n_args,
                                                 ggml_custom_op_t fun, int n_tasks,
                                                 void* userdata) {
  struct ggml_tensor* t = ggml_new_tensor_4d(ctx, type, ne0, ne1, ne2, ne3);
  int n;
  for (n = 0; n < n_args; ++n) t->src[n] = args[n];
  (void)n_tasks;
  t->fun = fun, t->userdata = userdata;
  return t;
}

/* One thread of nth. */
static inline void stand_in_compute(struct ggml_tensor* t, int ith, int nth) {
  t->fun(t, ith, nth, t->userdata);
}

/* Declared only: bench_blocks runs what calls them. */
#ifdef __cplusplus
extern "C" {
#endif
struct ggml_tensor* ggml_add(struct ggml_context* ctx, struct ggml_tensor* a,
                             struct ggml_tensor* b);
struct ggml_tensor* ggml_sub(struct ggml_context* ctx, struct ggml_tensor* a,
                             struct ggml_tensor* b);
struct ggml_tensor* ggml_mul_mat(struct ggml_context* ctx, struct ggml_tensor* a,
                                 struct ggml_tensor* b);
struct ggml_tensor* ggml_scale(struct ggml_context* ctx, struct ggml_tensor* a, float s);
struct ggml_tensor* ggml_reshape_3d(struct ggml_context* ctx, struct ggml_tensor* a, int64_t ne0,
                                    int64_t ne1, int64_t ne2);
#ifdef __cplusplus
}
#endif

#endif
