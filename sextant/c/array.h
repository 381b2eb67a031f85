/* Status codes, arrays and threads of the C API. */
#ifndef SEXTANT_C_ARRAY_H
#define SEXTANT_C_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "sextant/base/export.h"

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

/* Structs that begin with `size` get new members at their end in later versions. The caller sets
   size = sizeof(the struct), as SEXTANT_NEW(sextant_attention, a) does, which defines `a` with all
   other members zero. A library that is older than the caller's header refuses members that it does
   not know unless they are zero, and one that is newer takes those that the caller does not know as
   zero. Structs without a size do not change. */
#ifdef __cplusplus
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define SEXTANT_NEW(type, name) \
  type name = {};               \
  name.size = sizeof(type)
#else
#define SEXTANT_NEW(type, name) type name = {.size = sizeof(type)}
#endif

/* ---- arrays ---- */

typedef enum sextant_dtype {
  SEXTANT_FLOAT32 = 0,
  SEXTANT_BFLOAT16 = 1,
  SEXTANT_FLOAT16 = 2,
  SEXTANT_INT8 = 3,   /* of caches only */
  SEXTANT_FLOAT64 = 4 /* of key_bias only */
} sextant_dtype;

/* Strides are counted in elements, and may have any sign or order. They have no default, so
   sextant_contiguous() should fill them in: with stride 0 all elements along a dimension are one.
   Outputs refuse this, and arrays of which every stride is 0. Elements lie within 2^62 bytes of
   `data`. An array that is all zero is absent; one that has elements and no data is refused. Sizes
   have a product of at most 2^60. Inputs are not written. An output must not share memory with
   another array of the call, except that `out` may be q itself, with the same sizes and strides. */
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
   them. Results have the same bits for any number of threads. */
typedef struct sextant_pool sextant_pool;
SEXTANT_API sextant_status sextant_pool_create(int threads, sextant_pool** pool);
SEXTANT_API void sextant_pool_destroy(sextant_pool* pool);

/* The caller's own threads. run() calls task(state, index, worker) once for each index in
   [0, tasks), in any order and thread, and returns when all are done; `worker` is in [0, workers),
   and no two calls that overlap have the same one. */
typedef void (*sextant_task)(void* state, int64_t index, int worker);
typedef struct sextant_threads {
  size_t size;
  int workers;
  void (*run)(void* user, int64_t tasks, sextant_task task, void* state);
  void* user;
} sextant_threads;
SEXTANT_API sextant_status sextant_pool_create_from(const sextant_threads* threads,
                                                    sextant_pool** pool);

#ifdef __cplusplus
}
#endif

#endif
