# Installs the build into a fresh prefix with a space in its name, builds the consumer against it,
# runs it, and runs the installed command.
function(must)
  execute_process(COMMAND ${ARGV}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
set(prefix "${WORK}/a prefix")
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
must(${CMAKE_COMMAND} -G Ninja -S ${CONSUMER} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DCMAKE_BUILD_TYPE=Release
  -DWANTED=${VERSION})
must(${CMAKE_COMMAND} --build ${WORK}/build)
must(${WORK}/build/consumer)
must(${prefix}/bin/sextant --version)
file(GLOB_RECURSE licence "${prefix}/share/doc/*/LICENSE")
if(NOT licence)
  message(FATAL_ERROR "${prefix}/share/doc: expected LICENSE, but it is not installed")
endif()
