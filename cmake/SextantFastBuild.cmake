# Headers of libraries are parsed once for many sources, and small sources are compiled in batches:
# a cold build then takes about half the time.
#
# A precompiled header serves a target only if both are compiled with the same options of code
# generation: -Winvalid-pch says where they differ, but another level of -O crashes g++ 12. A source
# with options of its own has SKIP_PRECOMPILE_HEADERS. Sources still include all that they use:
# SEXTANT_FAST_BUILD=OFF, as the presets of the sanitizers have it, compiles each file alone.
option(SEXTANT_FAST_BUILD "Parse libraries' headers once, and compile small sources in batches" ON)

# ccache hits only if it is told that macros such as __TIME__ in a precompiled header do not matter.
if(SEXTANT_FAST_BUILD AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Headers of the standard library that most sources use.
set(sextant_standard_headers
  <algorithm> <array> <cmath> <cstdint> <cstdio> <filesystem> <functional> <map> <memory> <numeric>
  <optional> <span> <string> <string_view> <utility> <variant> <vector>)

# sextant_precompile(target headers...): the target makes a precompiled header of its own.
function(sextant_precompile target)
  if(SEXTANT_FAST_BUILD)
    target_precompile_headers(${target} PRIVATE ${sextant_standard_headers} ${ARGN})
  endif()
endfunction()

# sextant_reuse_precompiled(target from): the target uses the precompiled header of another.
function(sextant_reuse_precompiled target from)
  if(SEXTANT_FAST_BUILD)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# sextant_reuse_json_headers(target): of those for code without tensors, nlohmann-json and fmt. They
# were parsed with fmt's macros, which all that reuse them must have.
function(sextant_reuse_json_headers target)
  if(SEXTANT_FAST_BUILD AND TARGET sextant_json_headers)
    sextant_reuse_precompiled(${target} sextant_json_headers)
    target_compile_definitions(${target} PRIVATE
      $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  endif()
endfunction()

# sextant_headers_of_programs(name headers... LINK libraries...): a target that only makes a
# precompiled header, for programs to reuse. They have -fPIE where libraries have -fPIC. OPTIONS are
# those of the programs.
function(sextant_headers_of_programs name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;OPTIONS")
  if(SEXTANT_FAST_BUILD)
    file(CONFIGURE OUTPUT ${name}.cc CONTENT "// The target has a precompiled header and no code.\n")
    add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    sextant_compile_options(${name})
    target_compile_options(${name} PRIVATE -fPIE ${arg_OPTIONS})
    target_link_libraries(${name} PRIVATE ${arg_LINK})
    sextant_precompile(${name} ${arg_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# sextant_batches(target size sources...): compiles these sources of the target `size` at a time. No
# two files of a batch may declare the same name in an anonymous namespace.
function(sextant_batches target size)
  if(NOT SEXTANT_FAST_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(index 0)
  foreach(source IN LISTS ARGN)
    math(EXPR place "${index} % ${size}")
    if(place EQUAL 0)
      get_filename_component(first ${source} NAME_WE)
    endif()
    set_source_files_properties(${source} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP from_${first})
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()
