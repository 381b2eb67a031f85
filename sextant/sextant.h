/* Sextant's C API: exact rotary tables, attention, and decoding over a cache of keys and values,
   for C99 and every language that can call C. sextant_config.h reads a model's config.json.

   Arrays are [batch, heads, rows, columns] by strides, in the caller's memory, and are not copied.
   A distance is query position minus key position, positive for keys in the past.

   Functions that can fail return a sextant_status; then outputs are not written, and
   sextant_error() is a sentence that names the field, the expected value and the value. Objects
   are made by ..._create() and freed by ..._destroy(), which accepts NULL. Different threads may
   use different objects, and share pools and rotations. */
#ifndef SEXTANT_SEXTANT_H
#define SEXTANT_SEXTANT_H

#include "sextant/c/array.h"
#include "sextant/c/attention.h"
#include "sextant/c/cache.h"
#include "sextant/c/rope.h"
#include "sextant/version.h"

#endif
