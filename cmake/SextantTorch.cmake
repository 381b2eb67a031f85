# libtorch as the target `torch` and the variable TORCH_LIBRARIES, from one of two places.
#
# By default find_package(Torch) finds it: Debian's libtorch-dev, or an unpacked libtorch under
# CMAKE_PREFIX_PATH. The CMake files inside Python's torch package need a CUDA toolkit if it was
# built with CUDA, as PyPI's packages are. For these, SEXTANT_TORCH_ROOT names the folder of the
# package (.../site-packages/torch), and its CPU part is linked without its CMake files.
set(SEXTANT_TORCH_ROOT "" CACHE PATH
  "Folder of Python's torch package, instead of find_package(Torch)")

# The Python package is built against the torch of the interpreter that builds it. pip builds in an
# environment that hides this torch by PYTHONPATH. The libraries of Debian's torch are in a folder
# that find_package searches.
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
  # The paths are not cached: pip uses one build folder for the torch of several interpreters.
  find_library(SEXTANT_TORCH_CPU torch_cpu PATHS ${SEXTANT_TORCH_ROOT}/lib NO_DEFAULT_PATH
    NO_CACHE REQUIRED)
  find_library(SEXTANT_TORCH_C10 c10 PATHS ${SEXTANT_TORCH_ROOT}/lib NO_DEFAULT_PATH
    NO_CACHE REQUIRED)
  find_path(SEXTANT_TORCH_INCLUDE torch/library.h PATHS ${SEXTANT_TORCH_ROOT}/include
    NO_DEFAULT_PATH NO_CACHE REQUIRED)
  add_library(torch INTERFACE IMPORTED)
  target_include_directories(torch INTERFACE
    ${SEXTANT_TORCH_INCLUDE} ${SEXTANT_TORCH_INCLUDE}/torch/csrc/api/include)
  # libtorch_cpu.so finds its CUDA libraries by its own RPATH at run time, not at link time.
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
