/* Rotary positions in C. */
#ifndef SEXTANT_C_ROPE_H
#define SEXTANT_C_ROPE_H

#include "sextant/c/array.h"

#ifdef __cplusplus
extern "C" {
#endif

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
/* Pairs of any columns. */
typedef struct sextant_pair {
  int64_t first, second; /* columns */
  double frequency;      /* radians per position */
  double growth;         /* XPOS: natural log per position, by which queries grow and keys shrink */
  int64_t axis;          /* of a row's rotary positions, 0 to 7; 0 unless a row has several */
} sextant_pair;
SEXTANT_API sextant_status sextant_rope_create_from_pairs(const sextant_pair* pairs, int64_t count,
                                                          double gain, sextant_rope** rope);
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

/* A deprecated name, which the next version does not have. */
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
