#include "sextant/lab/result/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sextant::lab {
namespace {

TEST(Fixed, WhatRoundsToZeroHasNoMinus) {
  EXPECT_EQ(signed_fixed(-0.0004), "+0.000");
  EXPECT_EQ(signed_fixed(-0.0), "+0.000");
  EXPECT_EQ(fixed(-0.0004), "0.000");
  EXPECT_EQ(fixed(-0.4, 0), "0");
}

TEST(Fixed, AnyOtherKeepsItsSign) {
  EXPECT_EQ(signed_fixed(-0.0006), "-0.001");
  EXPECT_EQ(signed_fixed(0.0006), "+0.001");
  EXPECT_EQ(signed_fixed(-20, 1), "-20.0");
  EXPECT_EQ(signed_fixed(-INFINITY), "-inf");
  EXPECT_EQ(fixed(-1.5, 2), "-1.50");
  EXPECT_EQ(fixed(1.5, 2), "1.50");
  EXPECT_EQ(fixed(std::nan("")), "nan");
}

}  // namespace
}  // namespace sextant::lab
