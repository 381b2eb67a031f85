/* SEXTANT_API marks the functions and classes that a shared library exports; all others are hidden
   in it. With SEXTANT_STATIC, which a static library for engines defines for itself and its users,
   those are hidden, too: a library that it is linked into exports none of them. C and C++. */
#ifndef SEXTANT_BASE_EXPORT_H
#define SEXTANT_BASE_EXPORT_H

#if defined(__GNUC__) && !defined(SEXTANT_STATIC)
#define SEXTANT_API __attribute__((visibility("default")))
#else
#define SEXTANT_API
#endif

#endif
