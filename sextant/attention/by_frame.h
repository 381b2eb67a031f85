// Frames with speeds of their own (Turn::frame_stride), handed to a backend one by one.
//
// A dynamic stretch turns all keys anew for each length of text, so nothing could be shared between
// such frames anyway; memory stays that of one frame and its gradients, however many there are.
#pragma once

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant {

// What a backend does with one score; see Backend.
template <class T>
using Attend = void (*)(const Score<T>&, const Attended<T>&, const Executor&);
template <class T>
using AttendBackward = void (*)(const Score<T>&, const Attended<const T>&, AnyView<const T> d_out,
                                const ScoreGrad<T>&, const Executor&);

template <class T>
bool differs_by_frame(const Score<T>& score);

// Each frame as a score of its own, with one rotation for each turn. Rows in no frame get zeros and
// lse = -infinity.
template <class T>
void attend_by_frame(const Score<T>& score, const Attended<T>& result, const Executor& executor,
                     Attend<T> attend);

// The same for gradients. What frames share is summed in float64, in the order of the frames.
template <class T>
void attend_backward_by_frame(const Score<T>& score, const Attended<const T>& result,
                              AnyView<const T> d_out, const ScoreGrad<T>& grad,
                              const Executor& executor, AttendBackward<T> backward);

}  // namespace sextant
