# The files that pip installs into the folder `sextant` of the Python package: the library of
# operators for one torch, and the golden cases of sextant.conformance.
#
# scripts/make_wheel.sh builds libraries for several torches and the command first. It names their
# folder in SEXTANT_PREBUILT, and nothing is compiled here.
set(SEXTANT_PREBUILT "" CACHE PATH "Folder with lib/ and bin/ of the Python package, already built")

install(DIRECTORY tests/golden/data/ DESTINATION sextant/conformance/data COMPONENT python
  FILES_MATCHING PATTERN "*.safetensors" PATTERN README.md)
if(SEXTANT_PREBUILT)
  if(NOT IS_DIRECTORY ${SEXTANT_PREBUILT}/lib)
    message(FATAL_ERROR "SEXTANT_PREBUILT: expected a folder with lib/, "
      "but got ${SEXTANT_PREBUILT}")
  endif()
  install(DIRECTORY ${SEXTANT_PREBUILT}/ DESTINATION sextant COMPONENT python
    USE_SOURCE_PERMISSIONS)
  return()
endif()

add_subdirectory(sextant)
# _library.py chooses the library by the minor version of torch in its name. The macros are in
# torch/version.h, in newer torches in a header that it includes.
get_target_property(folders torch INTERFACE_INCLUDE_DIRECTORIES)
foreach(folder IN LISTS folders TORCH_INCLUDE_DIRS)
  foreach(header torch/version.h torch/headeronly/version.h)
    if(EXISTS ${folder}/${header})
      file(STRINGS ${folder}/${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) [0-9]+")
      if(lines)
        list(TRANSFORM lines REPLACE "[^0-9]" "")
        list(JOIN lines "." minor)
      endif()
    endif()
  endforeach()
endforeach()
if(NOT minor MATCHES "^[0-9]+\\.[0-9]+$")
  message(FATAL_ERROR "torch/version.h: expected TORCH_VERSION_MAJOR and TORCH_VERSION_MINOR")
endif()
# The running torch has loaded libtorch before. A path of it here would load a second one into a
# Python with another torch, and end in a segmentation fault.
set_target_properties(sextant_torch PROPERTIES OUTPUT_NAME sextant_torch-${minor}
  INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH OFF)
install(TARGETS sextant_torch LIBRARY DESTINATION sextant/lib COMPONENT python)
