# sextant_embed(<target> <file> <symbol>): compiles the bytes of a file into a target, as
#
#   namespace sextant { extern const std::string_view <symbol>; }
#
# It is for tables that a program reads at its start. A changed table makes CMake run again, which
# rewrites the source file.
function(sextant_embed target file symbol)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} content)
  # The length of a raw string literal is limited (64 KiB by the standard), so there are several.
  set(literals "")
  set(delimiter sextant)
  string(LENGTH "${content}" left)
  set(begin 0)
  while(begin LESS left)
    string(SUBSTRING "${content}" ${begin} 16000 part)
    string(APPEND literals "    R\"${delimiter}(${part})${delimiter}\"\n")
    math(EXPR begin "${begin} + 16000")
  endwhile()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "\
#include <string_view>

namespace sextant {
extern const std::string_view ${symbol};
const std::string_view ${symbol} =
@literals@    \"\";
}  // namespace sextant
")
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
