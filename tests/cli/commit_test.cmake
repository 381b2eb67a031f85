# Runs cmake/SextantVersion.cmake as a script: it finds the commit of a repository, none without a
# repository, and writes the header only when the commit changes.
#
#   cmake -DSCRIPT=... -DWORK=... -P commit_test.cmake
function(must)
  execute_process(COMMAND ${ARGV}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(source "${WORK}/a tree")
function(look_up)
  must(${CMAKE_COMMAND} -DSOURCE=${source} -DHEADER=${WORK}/commit.h -DDEPFILE=${WORK}/commit.d
    -P ${SCRIPT})
endfunction()
function(expect_commit expected)
  look_up()
  file(READ ${WORK}/commit.h header)
  if(NOT header STREQUAL "#define SEXTANT_COMMIT \"${expected}\"\n")
    message(FATAL_ERROR "expected commit ${expected}, but got ${header}")
  endif()
endfunction()
function(expect_dependency file)
  file(READ ${WORK}/commit.d dependencies)
  string(REPLACE " " "\\ " file "${source}/${file}")
  string(FIND "${dependencies}" "${file}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "expected ${file} among the dependencies, but got ${dependencies}")
  endif()
endfunction()

find_program(git git)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${source})
expect_commit(unknown)
if(NOT git)
  message(STATUS "There is no git here: only a tree without a repository was tested")
  return()
endif()

set(ENV{GIT_CONFIG_GLOBAL} /dev/null)
set(ENV{GIT_CONFIG_NOSYSTEM} 1)
set(in ${git} -C ${source} -c user.name=Test -c user.email=)
must(${in} init --quiet)
expect_commit(unknown) # there is no commit yet
must(${in} commit --quiet --allow-empty -m first)
must(${in} rev-parse --short=12 HEAD)
string(STRIP "${output}" first)
expect_commit(${first})
expect_dependency(.git/HEAD)
expect_dependency(.git/logs/HEAD)

# The commit is the same, so the header keeps its time and nothing is compiled again.
file(TOUCH ${WORK}/before)
must(${CMAKE_COMMAND} -E sleep 0.02)
look_up()
if(${WORK}/commit.h IS_NEWER_THAN ${WORK}/before)
  message(FATAL_ERROR "expected a header that keeps its time, but it was written again")
endif()

must(${in} commit --quiet --allow-empty -m second)
must(${in} rev-parse --short=12 HEAD)
string(STRIP "${output}" second)
expect_commit(${second})

# A tree without a repository inside another repository, such as an unpacked tarball.
set(source "${source}/vendored")
file(MAKE_DIRECTORY ${source})
expect_commit(unknown)
