# `cmake --install` installs the command with its plug-in, and the libraries with their headers and
# a CMake package, for use in other projects:
#
#   find_package(sextant REQUIRED)
#   target_link_libraries(engine PRIVATE sextant::core)      # or sextant::torch
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sextant)

install(TARGETS sextant_core EXPORT sextant_core)
install(DIRECTORY sextant/base sextant/position sextant/attention sextant/cache
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sextant
  FILES_MATCHING PATTERN "*.h" PATTERN cpu EXCLUDE PATTERN reference EXCLUDE)
install(EXPORT sextant_core NAMESPACE sextant:: FILE sextantCore.cmake DESTINATION ${package_dir})

if(TARGET sextant_torch)
  install(TARGETS sextant_torch EXPORT sextant_torch)
  install(DIRECTORY sextant/torch DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sextant
    FILES_MATCHING PATTERN "*.h")
  # Headers of methods include it.
  install(FILES sextant/files/json_fields.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sextant/files)
  install(EXPORT sextant_torch NAMESPACE sextant:: FILE sextantTorch.cmake
    DESTINATION ${package_dir})
endif()

install(FILES LICENSE NOTICE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The command loads its plug-in from ../lib, relative to its own folder.
install(TARGETS sextant_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET sextant_lab)
  install(TARGETS sextant_lab LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

configure_package_config_file(cmake/sextantConfig.cmake.in ${PROJECT_BINARY_DIR}/sextantConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sextantConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/sextantConfig.cmake ${PROJECT_BINARY_DIR}/sextantConfigVersion.cmake
  DESTINATION ${package_dir})
