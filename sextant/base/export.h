/* SEXTANT_API marks the functions and classes that a shared library exports; all others are hidden
   in it. C and C++. */
#ifndef SEXTANT_BASE_EXPORT_H
#define SEXTANT_BASE_EXPORT_H

#if defined(__GNUC__)
#define SEXTANT_API __attribute__((visibility("default")))
#else
#define SEXTANT_API
#endif

#endif
