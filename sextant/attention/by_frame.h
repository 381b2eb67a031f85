// Frames that have rotations of their own (SideRotation::frame_stride). Host backends process them
// one after the other.
//
// A dynamic stretch rotates all keys again for each length, so such frames cannot share rotated
// keys. Processing them one by one needs the memory of one frame and its gradients.
#pragma once

#include "sextant/attention/host_score.h"
#include "sextant/base/context.h"

namespace sextant {

bool differs_by_frame(std::span<const Sweep> sweeps);

template <class T>
struct ByFrame {
  // The two passes of a host backend for a score whose frames share their rotations.
  using Attend = void (*)(const HostScore<T>&, const HostAttended<T>&, const Context&);
  using AttendBackward = void (*)(const HostScore<T>&, const HostAttended<const T>&,
                                  HostAnyView<const T> d_out, const HostGrad<T>&, const Context&);

  // Attends each frame as a score of its own, with one rotation for each side of each sweep. Query
  // rows in no frame get zeros and lse = -infinity.
  static void attend(const HostScore<T>& score, const HostAttended<T>& result,
                     const Context& context, Attend attend);
  // The backward pass. Gradients of operands that frames share are summed in float64, in the order
  // of the frames.
  static void backward(const HostScore<T>& score, const HostAttended<const T>& result,
                       HostAnyView<const T> d_out, const HostGrad<T>& grad, const Context& context,
                       AttendBackward backward);
};

}  // namespace sextant
