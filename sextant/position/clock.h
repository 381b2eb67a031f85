// Positions as the hands of a clock: hand j completes one revolution per T_j positions,
//
//   row(k) = [ sin(2 pi k / T_0), cos(2 pi k / T_0), sin(2 pi k / T_1), cos(2 pi k / T_1), ... ]
//
// This is an explanation of sinusoids rather than a published method. A clock repeats after the
// least common multiple of its periods. A period of 1 carries no information: its hand has the same
// angle at every position.
//
// The "alien" clock has a constant ratio between successive hands, and its angles are in radians:
// sin(k / ratio^j). With ratio = base^(2 / width) it is the interleaved sinusoid of that base. The
// source of this encoding writes sin(k / 3600^(2j)), a ratio of 3600^2: beyond the first hand the
// sines stay near 0 and the cosines near 1.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

// The second, minute and hour hands of a clock face, for positions counted in seconds.
inline constexpr std::array<int64_t, 3> kClockPeriods{60, 3600, 43200};

// 3600^2, the ratio of the alien clock as its source writes it.
inline constexpr double kAlienRatio = 3600.0 * 3600.0;

// Returns [positions, 2 periods], exact for any position. Throws Error if a period is below 1.
SEXTANT_API std::vector<double> clock_rows(std::span<const int64_t> periods,
                                           std::span<const int64_t> positions);

// Returns [positions, 2 hands]. Throws Error if ratio is not finite and at least 1, or hands is
// below 1.
SEXTANT_API std::vector<double> alien_clock_rows(double ratio, int64_t hands,
                                                 std::span<const int64_t> positions);

}  // namespace sextant
