# `cmake --install` installs what was built, in four components: `core` and `config`, the libraries
# for engines, with headers, CMake package and pkg-config files; `torch`, the library for libtorch;
# and `tools`, the command with its plug-in. For use in other projects:
#
#   find_package(sextant REQUIRED COMPONENTS core)
#   target_link_libraries(engine PRIVATE sextant::core)      # or sextant::config, sextant::torch
include(CMakePackageConfigHelpers)
include(cmake/SextantApi.cmake)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sextant)

# sextant_install_component(component file): the library sextant_<component> as sextant::<component>
function(sextant_install_component component file)
  install(TARGETS sextant_${component} EXPORT sextant_${component} COMPONENT ${component})
  install(EXPORT sextant_${component} NAMESPACE sextant:: FILE ${file}
    DESTINATION ${package_dir} COMPONENT ${component})
endfunction()

# sextant_install_pkg_config(component): sextant-<component>.pc, which finds its prefix from its own
# folder. A static library needs its own libraries whenever it is linked, a shared one does not.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(pc_flags "")
set(pc_libraries "")
if(NOT BUILD_SHARED_LIBS)
  if(CMAKE_CXX_VISIBILITY_PRESET STREQUAL hidden)
    set(pc_flags " -DSEXTANT_STATIC")
  endif()
  set(pc_libraries "-lstdc++ -lm -pthread -ldl")
endif()
function(sextant_install_pkg_config component)
  set(file ${PROJECT_BINARY_DIR}/sextant-${component}.pc)
  configure_file(cmake/sextant-${component}.pc.in ${file} @ONLY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endfunction()

sextant_install_component(core sextantCore.cmake)
sextant_install_headers(core ${sextant_core_headers})
sextant_install_pkg_config(core)
install(FILES LICENSE NOTICE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)
if(TARGET sextant_config)
  sextant_install_component(config sextantConfiguration.cmake)
  sextant_install_headers(config ${sextant_config_headers})
  sextant_install_pkg_config(config)
endif()

if(TARGET sextant_torch)
  sextant_install_component(torch sextantTorch.cmake)
  install(DIRECTORY sextant/torch DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sextant COMPONENT torch
    FILES_MATCHING PATTERN "*.h" PATTERN bindings EXCLUDE PATTERN group_connection.h EXCLUDE)
  # Headers of methods include it.
  install(FILES sextant/files/json_fields.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sextant/files
    COMPONENT torch)
endif()

# The command loads its plug-in from ../lib, relative to its own folder.
if(SEXTANT_COMMAND)
  install(TARGETS sextant_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
if(TARGET sextant_lab)
  install(TARGETS sextant_lab LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tools)
endif()

configure_package_config_file(cmake/sextantConfig.cmake.in ${PROJECT_BINARY_DIR}/sextantConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sextantConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/sextantConfig.cmake ${PROJECT_BINARY_DIR}/sextantConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT core)
