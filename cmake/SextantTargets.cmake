# Compile options of every target of the project.
#
# -ffp-contract=off: the double-double type Real and the fixed order of sums need two roundings for
# a*b+c; kernels call fused multiply-add explicitly. -Wno-missing-field-initializers: designated
# initialisers name only the fields that differ from their defaults.
function(sextant_compile_options target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off)
endfunction()

# Core code has stricter warnings, which libtorch's headers would not pass.
function(sextant_core_options target)
  sextant_compile_options(${target})
  target_compile_options(${target} PRIVATE -Wconversion -Wshadow)
endfunction()

# sextant_library_for_engines(target component): a library that other projects link, installed as
# sextant::<component>. A shared one has the minor version in its SONAME and exports only symbols of
# the API: the script also hides instantiations of the standard library's templates.
function(sextant_library_for_engines target component)
  add_library(sextant::${component} ALIAS ${target})
  set(soname ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${component} VERSION ${PROJECT_VERSION} SOVERSION ${soname})
  if(BUILD_SHARED_LIBS AND CMAKE_CXX_VISIBILITY_PRESET STREQUAL hidden
      AND CMAKE_SYSTEM_NAME STREQUAL Linux)
    set(script ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.ld)
    target_link_options(${target} PRIVATE LINKER:--version-script=${script} LINKER:--no-undefined)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script})
  endif()
endfunction()

# sextant_small_code(sources...): sources of sextant_core without loops over tensors. -Os makes a
# third less code of them than -O3, which engines link. In the folder's own CMakeLists.txt.
function(sextant_small_code)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY sextant_core
    PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
endfunction()

# Code without loops over tensors, such as the command and file readers, is compiled with -O1: that
# takes two thirds of the time of -O3, and is fast enough.
set(sextant_light $<$<CONFIG:Release>:-O1>)
function(sextant_light_options target)
  sextant_core_options(${target})
  target_compile_options(${target} PRIVATE ${sextant_light})
endfunction()

# sextant_test(name SOURCES sources... [ALONE sources...] LINK libraries... [SLOW]
#              [HEADERS target] [SHARDS count]):
# one GoogleTest program and one CTest entry, both called `name`. SOURCES are compiled in batches of
# twelve (sextant_sources), which takes half the time of twelve files: what they instantiate of
# GoogleMock and nlohmann-json is compiled once. `./check --quick` skips tests with SLOW: they get
# the label "slow". HEADERS is the target whose precompiled header the program uses, by default
# test_headers. With SHARDS there are `count` entries, each with its part of the cases.
function(sextant_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW" "HEADERS;SHARDS" "SOURCES;LINK;ALONE")
  if(NOT arg_HEADERS)
    set(arg_HEADERS test_headers)
  endif()
  add_executable(${name})
  sextant_sources(${name} 12 ${arg_SOURCES} ALONE ${arg_ALONE})
  sextant_compile_options(${name})
  target_compile_options(${name} PRIVATE ${sextant_light}) # no long loops in test code
  sextant_reuse_precompiled(${name} ${arg_HEADERS})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE SEXTANT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set(entries ${name})
  if(arg_SHARDS)
    set(entries)
    foreach(shard RANGE 1 ${arg_SHARDS})
      list(APPEND entries ${name}_${shard})
    endforeach()
  endif()
  set(index 0)
  foreach(entry IN LISTS entries)
    add_test(NAME ${entry} COMMAND ${name})
    if(arg_SHARDS)
      set_tests_properties(${entry} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index}")
      math(EXPR index "${index} + 1")
    endif()
  endforeach()
  if(arg_SLOW)
    set_tests_properties(${entries} PROPERTIES LABELS slow)
  endif()
endfunction()
