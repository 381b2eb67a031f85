# torch.distributed's C++ part (c10d) for sextant::Group (sextant/torch/group.h):
#
#   SEXTANT_C10D          whether libtorch has it
#   SEXTANT_GLOO_INCLUDE  Gloo's headers beside those of libtorch, or NOTFOUND
#   SEXTANT_GLOO_LIBRARY  Gloo's library beside them; libtorch may also contain it
#
# Gloo's headers must be those that libtorch was built with. Python's torch contains Gloo without
# headers: with it, groups are made by Python, and C++ takes them by their names.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES ${TORCH_LIBRARIES})
check_cxx_source_compiles("
  namespace c10d { struct ProcessGroup { ~ProcessGroup(); }; }
  void end(c10d::ProcessGroup& group) { group.~ProcessGroup(); }
  int main() {}" SEXTANT_C10D)
unset(CMAKE_REQUIRED_LIBRARIES)
if(SEXTANT_C10D AND NOT SEXTANT_TORCH_ROOT)
  find_path(SEXTANT_GLOO_INCLUDE gloo/rendezvous/store.h
    PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH)
  find_library(SEXTANT_GLOO_LIBRARY gloo)
endif()
