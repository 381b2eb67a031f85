# libtorch, as the target `torch` and the variable TORCH_LIBRARIES, from one of two places.
#
# By default where find_package(Torch) finds it: Debian's libtorch-dev, or an unpacked libtorch
# under CMAKE_PREFIX_PATH. The CMake files inside Python's torch package demand a CUDA toolkit if it
# was built with CUDA, and PyPI's are; so SEXTANT_TORCH_ROOT names the folder of such a package
# (.../site-packages/ torch) and its CPU part is linked without them.
set(SEXTANT_TORCH_ROOT "" CACHE PATH "Folder of Python's torch package, instead of find_package(Torch)")

# A Python package is built against the torch of the interpreter that asks for it. pip builds in an
# environment that hides that torch by PYTHONPATH; Debian's keeps its libraries where find_package
# looks.
if(SEXTANT_PYTHON AND NOT SEXTANT_TORCH_ROOT)
  find_package(Python REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH ${Python_EXECUTABLE} -c
      "import os, torch; print(os.path.dirname(torch.__file__))"
    OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR
      "The Python package needs torch: `${Python_EXECUTABLE} -m pip install torch` first.")
  endif()
  if(EXISTS ${root}/lib/libtorch_cpu.so)
    set(SEXTANT_TORCH_ROOT ${root})
  endif()
endif()

if(SEXTANT_TORCH_ROOT)
  # Not cached: pip's build folder serves the torch of one interpreter after another.
  find_library(SEXTANT_TORCH_CPU torch_cpu PATHS ${SEXTANT_TORCH_ROOT}/lib NO_DEFAULT_PATH
    NO_CACHE REQUIRED)
  find_library(SEXTANT_TORCH_C10 c10 PATHS ${SEXTANT_TORCH_ROOT}/lib NO_DEFAULT_PATH
    NO_CACHE REQUIRED)
  find_path(SEXTANT_TORCH_INCLUDE torch/library.h PATHS ${SEXTANT_TORCH_ROOT}/include
    NO_DEFAULT_PATH NO_CACHE REQUIRED)
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
