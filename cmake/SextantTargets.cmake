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
  if(CMAKE_CXX_VISIBILITY_PRESET STREQUAL hidden AND CMAKE_SYSTEM_NAME STREQUAL Linux)
    set(script ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.ld)
    target_link_options(${target} PRIVATE LINKER:--version-script=${script} LINKER:--no-undefined)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script})
  endif()
endfunction()

# Code without loops over tensors, such as the command and file readers, is compiled with -O1: that
# takes two thirds of the time of -O3, and is fast enough.
set(sextant_light $<$<CONFIG:Release>:-O1>)
function(sextant_light_options target)
  sextant_core_options(${target})
  target_compile_options(${target} PRIVATE ${sextant_light})
endfunction()

# sextant_test(name SOURCES sources... [ALONE sources...] LINK libraries... [SLOW]
#              [HEADERS target]):
# one GoogleTest program and one CTest entry, both called `name`. SOURCES are compiled in batches of
# four (sextant_sources). `./check --quick` skips tests with SLOW: they get the label "slow".
# HEADERS is the target whose precompiled header the program uses, by default test_headers.
function(sextant_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW" "HEADERS" "SOURCES;LINK;ALONE")
  if(NOT arg_HEADERS)
    set(arg_HEADERS test_headers)
  endif()
  add_executable(${name})
  sextant_sources(${name} 4 ${arg_SOURCES} ALONE ${arg_ALONE})
  sextant_compile_options(${name})
  target_compile_options(${name} PRIVATE ${sextant_light}) # no long loops in test code
  sextant_reuse_precompiled(${name} ${arg_HEADERS})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE SEXTANT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  if(arg_SLOW)
    set_tests_properties(${name} PROPERTIES LABELS slow)
  endif()
endfunction()
