// Whether operands fit together. All that a kernel takes for granted is checked here, once, before
// anything is written; the cost is O(sweeps * rows), nothing beside O(rows * rows * D).
#pragma once

#include <string>

#include "sextant/attention/score.h"

namespace sextant {

// Throw Error that names the operand, what was expected and what was got.
template <class T>
void check_score(const Score<T>& score);
template <class T, class U>  // U: T or const T
void check_attended(const Score<T>& score, const Attended<U>& attended);
template <class T>
void check_grad(const Score<T>& score, AnyView<const T> d_out, const ScoreGrad<T>& grad);

// name: the turn's. For `rows` rows of `columns`, by `rotation`, which is the turn's or one of
// them.
void check_rotation(const std::string& name, const SideRotation& side, const Rotation& rotation,
                    int64_t rows, int64_t columns);

}  // namespace sextant
