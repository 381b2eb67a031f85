# Options of every target of the project.
#
# -ffp-contract=off: Real and the fixed order of sums need a*b+c to be two roundings where it is
# written so; kernels ask for fused multiply-add by name. -Wno-missing-field-initializers: a
# designated initialiser names what differs from the defaults.
function(sextant_compile_options target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off)
endfunction()

# Core code: stricter, and without libtorch's headers there is nothing to excuse.
function(sextant_core_options target)
  sextant_compile_options(${target})
  target_compile_options(${target} PRIVATE -Wconversion -Wshadow)
endfunction()

# Code without loops over tensors, such as the command and readers of files: -O1 compiles in two
# thirds of the time of -O3, and no user feels the difference.
set(sextant_light $<$<CONFIG:Release>:-O1>)
function(sextant_light_options target)
  sextant_core_options(${target})
  target_compile_options(${target} PRIVATE ${sextant_light})
endfunction()

# sextant_test(name sources... LINK libraries...): one gtest program, one CTest entry.
# Its CTest name is `name`; label "slow" is for those that `./check --quick` leaves out. HEADERS
# names the target whose precompiled header it uses, if that is not test_headers.
function(sextant_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW" "HEADERS" "SOURCES;LINK")
  if(NOT arg_HEADERS)
    set(arg_HEADERS test_headers)
  endif()
  add_executable(${name} ${arg_SOURCES})
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
