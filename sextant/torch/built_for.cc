// The version of torch that this library was built for, as text in its file. The Python package
// reads the file before it loads the library (python/sextant/_library.py): a library for another
// torch would end in a segmentation fault.
#include <torch/version.h>

extern "C" __attribute__((used, visibility("default"))) const char sextant_libtorch[] =
    "sextant-libtorch " TORCH_VERSION;
