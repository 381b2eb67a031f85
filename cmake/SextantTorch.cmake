# libtorch, as the target `torch` and the variable TORCH_LIBRARIES, from one of two places.
#
# By default where find_package(Torch) finds it: Debian's libtorch-dev, or an unpacked libtorch under
# CMAKE_PREFIX_PATH. The CMake files inside Python's torch package demand a CUDA toolkit if it was built
# with CUDA, and PyPI's are; so SEXTANT_TORCH_ROOT names the folder of such a package (.../site-packages/
# torch) and its CPU part is linked without them.
set(SEXTANT_TORCH_ROOT "" CACHE PATH "Folder of Python's torch package, instead of find_package(Torch)")

if(SEXTANT_TORCH_ROOT)
  find_library(SEXTANT_TORCH_CPU torch_cpu PATHS ${SEXTANT_TORCH_ROOT}/lib NO_DEFAULT_PATH REQUIRED)
  find_library(SEXTANT_TORCH_C10 c10 PATHS ${SEXTANT_TORCH_ROOT}/lib NO_DEFAULT_PATH REQUIRED)
  find_path(SEXTANT_TORCH_INCLUDE torch/library.h PATHS ${SEXTANT_TORCH_ROOT}/include
    NO_DEFAULT_PATH REQUIRED)
  add_library(torch INTERFACE IMPORTED)
  target_include_directories(torch INTERFACE
    ${SEXTANT_TORCH_INCLUDE} ${SEXTANT_TORCH_INCLUDE}/torch/csrc/api/include)
  # Its libtorch_cpu.so finds what it needs of CUDA by its own RPATH, and not at link time.
  target_link_libraries(torch INTERFACE
    ${SEXTANT_TORCH_CPU} ${SEXTANT_TORCH_C10} -Wl,--allow-shlib-undefined)
  set(TORCH_LIBRARIES torch)
else()
  find_package(Torch QUIET)
  if(NOT Torch_FOUND)
    message(FATAL_ERROR
      "libtorch was not found. One of these helps:\n"
      "  apt-get install libtorch-dev                  (Debian)\n"
      "  -DCMAKE_PREFIX_PATH=/path/to/libtorch         (an unpacked libtorch)\n"
      "  -DSEXTANT_TORCH_ROOT=.../site-packages/torch  (Python's torch, 2.6 or later)\n"
      "  -DSEXTANT_TORCH=OFF, or --preset core         (position, attention and charts only)")
  endif()
endif()
