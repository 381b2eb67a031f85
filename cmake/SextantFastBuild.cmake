# Parses the headers of libraries once for many sources (precompiled headers), and compiles small
# sources in batches: a cold build then takes about half the time.
#
# A target can use a precompiled header only if both are compiled with the same code generation
# options: -Winvalid-pch reports differences, but another level of -O crashes g++ 12. A source with
# its own options has SKIP_PRECOMPILE_HEADERS. Sources still include all headers that they use:
# SEXTANT_FAST_BUILD=OFF, as in the presets of the sanitizers, compiles each file alone.
option(SEXTANT_FAST_BUILD "Parse libraries' headers once, and compile small sources in batches" ON)

# ccache finds cached results only if it ignores macros such as __TIME__ in a precompiled header.
if(SEXTANT_FAST_BUILD AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# The headers of the standard library that most sources use.
set(sextant_standard_headers
  <algorithm> <array> <cmath> <cstdint> <cstdio> <filesystem> <functional> <map> <memory> <numeric>
  <optional> <span> <string> <string_view> <utility> <variant> <vector>)

# sextant_precompile(target headers...): the target builds its own precompiled header.
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

# sextant_reuse_json_headers(target): the target uses the precompiled header for code without
# tensors, with nlohmann-json and fmt. It was parsed with fmt's macros, which the target gets too.
function(sextant_reuse_json_headers target)
  if(SEXTANT_FAST_BUILD AND TARGET sextant_json_headers)
    sextant_reuse_precompiled(${target} sextant_json_headers)
    target_compile_definitions(${target} PRIVATE
      $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  endif()
endfunction()

# sextant_headers_of_programs(name headers... LINK libraries...): a target that only builds a
# precompiled header, which programs reuse. Programs are compiled with -fPIE, libraries with -fPIC.
# OPTIONS are the options of the programs.
function(sextant_headers_of_programs name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;OPTIONS")
  if(SEXTANT_FAST_BUILD)
    file(CONFIGURE OUTPUT ${name}.cc
      CONTENT "// The target has a precompiled header and no code.\n")
    add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    sextant_compile_options(${name})
    target_compile_options(${name} PRIVATE -fPIE ${arg_OPTIONS})
    target_link_libraries(${name} PRIVATE ${arg_LINK})
    sextant_precompile(${name} ${arg_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# sextant_sources(target size sources... [ALONE sources...]): adds these sources to the target, and
# compiles those before ALONE in batches of `size` files. Two files of a batch must not declare the
# same name in an anonymous namespace.
function(sextant_sources target size)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ALONE")
  target_sources(${target} PRIVATE ${arg_UNPARSED_ARGUMENTS} ${arg_ALONE})
  if(NOT SEXTANT_FAST_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(index 0)
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    math(EXPR place "${index} % ${size}")
    if(place EQUAL 0)
      get_filename_component(first ${source} NAME_WE)
    endif()
    set_source_files_properties(${source} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP from_${first})
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()
