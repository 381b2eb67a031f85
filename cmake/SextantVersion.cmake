# The library `sextant_version`: the commit and libtorch of this build.
#
# They are compiled into one file. This file also runs as a script whenever git's HEAD changes, and
# writes the commit into a header. Its depfile lists the files of git that change with HEAD, so that
# a build with nothing to do runs nothing, and a build whose .git was removed does not fail.
#
#   cmake -DSOURCE=... -DHEADER=... -DDEPFILE=... -P SextantVersion.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(SEXTANT_COMMIT unknown)
  # This file is the first dependency, since ninja always runs a command without dependencies.
  string(REPLACE " " "\\ " dependencies ${CMAKE_CURRENT_LIST_FILE})
  find_program(git git)
  # The tree must be a repository itself: inside another project, git would report that project's
  # commit.
  if(git AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      set(SEXTANT_COMMIT ${found})
    endif()
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --symbolic-full-name HEAD
      OUTPUT_VARIABLE branch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    foreach(name HEAD logs/HEAD ${branch})
      execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --git-path ${name}
        OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${SOURCE} NORMALIZE)
      if(EXISTS ${path} AND NOT IS_DIRECTORY ${path})
        string(REPLACE " " "\\ " path ${path})
        list(APPEND dependencies ${path})
      endif()
    endforeach()
  endif()
  list(REMOVE_DUPLICATES dependencies)
  list(JOIN dependencies " " dependencies)
  string(REPLACE " " "\\ " target ${HEADER})
  file(WRITE ${DEPFILE} "${target}: ${dependencies}\n")
  file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define SEXTANT_COMMIT \"@SEXTANT_COMMIT@\"\n" @ONLY)
  return()
endif()

set(libtorch none)
if(SEXTANT_TORCH AND SEXTANT_TORCH_ROOT)
  set(libtorch unknown)
  if(EXISTS ${SEXTANT_TORCH_ROOT}/version.py)
    file(STRINGS ${SEXTANT_TORCH_ROOT}/version.py line REGEX "^__version__ = ")
    if(line MATCHES "['\"](.+)['\"]")
      set(libtorch ${CMAKE_MATCH_1})
    endif()
  endif()
elseif(SEXTANT_TORCH)
  set(libtorch ${Torch_VERSION})
endif()

set(header ${CMAKE_CURRENT_BINARY_DIR}/version/sextant_commit.h)
add_custom_command(OUTPUT ${header} DEPFILE ${header}.d
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${header} -DDEPFILE=${header}.d
    -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Looking up the commit" VERBATIM)
add_library(sextant_version STATIC build_info.cc ${header})
sextant_core_options(sextant_version)
target_include_directories(sextant_version PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/version)
target_link_libraries(sextant_version PUBLIC sextant_core)
target_compile_definitions(sextant_version PRIVATE SEXTANT_LIBTORCH="${libtorch}")
