// The current stream of the stand-in, in the library that has the name of libtorch's.
#pragma once

namespace sextant::testing {

struct StandInStream {
  void* handle = nullptr;
  bool captured = false;
};
StandInStream& stand_in_stream();

}  // namespace sextant::testing
