// A Score that looks into the memory of tensors: no operand is copied, whatever its strides.
#pragma once

#include <vector>

#include "sextant/attention/score.h"
#include "sextant/torch/operators/flat_operands.h"

namespace sextant {

// x of at most four dimensions, [batch, heads, rows, columns]; missing ones have size 1.
template <class T>
View<T> view_4d(const at::Tensor& x);  // [batch, heads, rows, columns]
// The same where numbers may be bfloat16 or float16 in place of T.
template <class T>
AnyView<T> any_view_4d(const at::Tensor& x);
template <class T>
View<T> view_vectors(const at::Tensor& x);  // [heads, rows, columns]
template <class T>
View<T> view_numbers(const at::Tensor& x);  // [heads, rows]
template <class T>
View<T> view_rows(const at::Tensor& x);  // [batch, heads, rows]

// Arguments that check_arguments() accepted, all on the CPU; T is wide_type() of q. Holds what the
// score points to, so it stays where it is.
template <class T>
class ScoreOfTensors {
 public:
  explicit ScoreOfTensors(const FlatOperands& arguments);
  ScoreOfTensors(const ScoreOfTensors&) = delete;
  ScoreOfTensors& operator=(const ScoreOfTensors&) = delete;

  const Score<T>& score() const { return score_; }

 private:
  void bind_frames();
  void bind_sweep(int64_t sweep);
  SideRotation bind_turn(int64_t sweep, const at::Tensor& rotary_positions,
                         const at::Tensor& offsets);
  void bind_rotations(int64_t sweep);
  void bind_tables();
  void bind_mask();

  FlatOperands arguments_;                        // index tensors made contiguous, tables wide
  std::vector<std::vector<Rotation>> rotations_;  // of each sweep: one, or one for each frame
  std::vector<std::vector<Turns>> offsets_;
  Score<T> score_;
};

}  // namespace sextant
