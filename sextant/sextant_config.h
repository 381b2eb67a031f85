/* The part of the C API that reads models' configurations, in the library sextant_config. */
#ifndef SEXTANT_SEXTANT_CONFIG_H
#define SEXTANT_SEXTANT_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "sextant/sextant.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rotation of one layer of a model. `config` is the text of a Hugging Face config.json, the
   flags of an engine's command line, or the first bytes of a GGUF file, with its whole header;
   `bytes` is its size. `layer` counts from 0. `length` is the number of tokens of the sequence, on
   which dynamic stretches and LongRoPE depend.

   `scale`, unless it is NULL, gets the factor on scores, with the model's own factors and without
   the gain, which is in the rotation. A layer that does not rotate is an error. Windows, chunks and
   laws that scale queries are not in the rotation; `sextant explain` prints them. */
SEXTANT_API sextant_status sextant_rope_create_from_config(const char* config, size_t bytes,
                                                           int64_t layer, int64_t length,
                                                           sextant_rope** rope, double* scale);

/* Both give JSON that sextant_free() frees, and read `config` as above. An explanation is that of
   `sextant explain --json` (docs/explain.md); length 0: the configuration's own. */
SEXTANT_API sextant_status sextant_explain_json(const char* config, size_t bytes, int64_t length,
                                                char** json);
/* {"to": ..., "written": ..., "warnings": [...]}: the configuration in the format "hf5", "hf4",
   "llama.cpp" or "vllm", and the values that differ there. A format that cannot express it is an
   error. */
SEXTANT_API sextant_status sextant_convert_json(const char* config, size_t bytes, const char* to,
                                                char** json);
/* Accepts NULL. */
SEXTANT_API void sextant_free(char* text);

#ifdef __cplusplus
}
#endif

#endif
