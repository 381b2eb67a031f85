/* sextant/ggml.h as C99, with a stand-in of ggml: two queries over one key give its value. */
#include <ggml.h>
#include <math.h>
#include <stdio.h>

#include "sextant/ggml.h"

int main(void) {
  static struct ggml_context context;
  float q[8] = {1, 2, 3, 4, 5, 6, 7, 8}, k[4] = {1, 1, 1, 1}, v[4] = {1, 2, 3, 4}, out[8];
  struct ggml_tensor* tensors[3];
  struct ggml_tensor* result;
  int n, wrong = 0;
  SEXTANT_NEW(sextant_ggml, op);
  for (n = 0; n < 3; ++n)
    tensors[n] = ggml_new_tensor_4d(&context, GGML_TYPE_F32, 4, n == 0 ? 2 : 1, 1, 1);
  tensors[0]->data = q, tensors[1]->data = k, tensors[2]->data = v;
  op.attention.sees = SEXTANT_ALL_KEYS;
  result = sextant_ggml_attention(&context, tensors[0], tensors[1], tensors[2], &op);
  if (!result) {
    fprintf(stderr, "ggml: %s\n", sextant_error());
    return 1;
  }
  result->data = out;
  stand_in_compute(result, 0, 1);
  for (n = 0; n < 8; ++n) wrong += fabsf(out[n] - v[n % 4]) > 1e-6f;
  sextant_plan_destroy(op.plan);
  return wrong != 0;
}
