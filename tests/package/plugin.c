/* A library with one function, into which the static core is linked. */
#include <stddef.h>

#include "sextant/sextant.h"

const char* plugin_version(void);
const char* plugin_version(void) {
  sextant_attention attention = {0};
  sextant_array out = {0};
  return sextant_attend(&attention, &out, NULL, NULL) == SEXTANT_OK ? "" : sextant_version();
}
