# Installs the build into a fresh prefix with a space in its name, uses it as other projects do
# (try_prefix.sh), and runs the installed command.
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
must(${CMAKE_COMMAND} -E env CXX=${CXX} "CXXFLAGS=${CXX_FLAGS}" CMAKE_GENERATOR=Ninja
  ${TRY_PREFIX} ${prefix} ${WORK}/try)
must(${prefix}/bin/sextant --version)
file(GLOB_RECURSE licence "${prefix}/share/doc/*/LICENSE")
if(NOT licence)
  message(FATAL_ERROR "${prefix}/share/doc: expected LICENSE, but it is not installed")
endif()
