// Compares Real with values computed by mpmath at 300 bits.
#include "sextant/position/double_double.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sextant/base/error.h"

namespace sextant {
namespace {

// a - b| / |b|, for b whose low part is a normal floating-point value.
double error(Real a, Real b) {
  const Real difference = a - b;
  return std::fabs(difference.high + difference.low) / std::fabs(b.high);
}

constexpr Real kPi{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
constexpr Real kThird{0x1.5555555555555p-2, 0x1.5555555555555p-56};

TEST(Real, ArithmeticKeeps100Bits) {
  EXPECT_LT(error(Real(1) / Real(3), kThird), 0x1p-102);
  EXPECT_LT(error(kPi * kPi, {0x1.3bd3cc9be45dep+3, 0x1.692b71366cc04p-51}), 0x1p-102);
  EXPECT_LT(error(Real(1) / kPi, {0x1.45f306dc9c883p-2, -0x1.6b01ec5417056p-56}), 0x1p-102);
  EXPECT_LT(error(kPi + kThird, {0x1.bcca5feeed7c3p+1, -0x1.d79791207ca74p-56}), 0x1p-102);
  EXPECT_LT(error(kPi - kThird, {0x1.67750a999826ep+1, -0x1.9048477964ea4p-53}), 0x1p-102);
}

TEST(Real, SubtractionOfNeighboursIsExact) {
  const Real next{kPi.high, kPi.low + 0x1p-100};
  EXPECT_EQ(double(next - kPi), 0x1p-100);
  EXPECT_EQ(double(kPi - kPi), 0);
}

TEST(Real, ExpKeeps105Bits) {
  const struct {
    double x;
    Real value;
  } kTruth[] = {
      {1.0, {0x1.5bf0a8b145769p+1, 0x1.4d57ee2b1013ap-53}},
      {-1.0, {0x1.78b56362cef38p-2, -0x1.ca8a4270fadf5p-57}},
      {0.5, {0x1.a61298e1e069cp+0, -0x1.b4690082a4906p-55}},
      {1e-10, {0x1.000000006df38p+0, -0x1.3112d8e5e6d4cp-57}},
      {-18.420680743952367, {0x1.5798ee2308c2fp-27, 0x1.816e731195516p-81}},
      {0.34657359027997264, {0x1.6a09e667f3bccp+0, 0x1.f68d3de197eeap-54}},
      {20.0, {0x1.ceb088b68e804p+28, 0x1.0c4bcbfcacce6p-31}},
      {700.0, {0x1.d945df4f8ec8ep+1009, 0x1.183392684a46ep+954}},
  };
  for (const auto& [x, value] : kTruth) EXPECT_LT(error(exp(x), value), 0x1p-105) << x;
}

TEST(Real, ExpSeesTheLowPart) {
  EXPECT_LT(error(exp({1.0, 0x1p-60}), exp(1.0) * (1 + Real(0x1p-60))), 0x1p-102);
}

TEST(Real, ExpBeyondTheRangeOfDouble) {
  EXPECT_EQ(double(exp(1000.0)), std::numeric_limits<double>::infinity());
  EXPECT_EQ(double(exp(-1000.0)), 0);
  EXPECT_TRUE(std::isnan(double(exp(std::numeric_limits<double>::quiet_NaN()))));
}

TEST(Real, LogKeeps105Bits) {
  const struct {
    double x;
    Real value;
  } kTruth[] = {
      {2.0, {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}},
      {10000.0, {0x1.26bb1bbb55516p+3, -0x1.f48ad494ea3e9p-51}},
      {1e7, {0x1.01e3b843eaa73p+4, -0x1.6bf2f40499ed8p-51}},
      {0.1, {-0x1.26bb1bbb55515p+1, -0x1.8b752b6b15c17p-53}},
      {0.7071, {-0x1.62e6b3842a25ep-2, 0x1.ab287f524a622p-56}},
      {3.0, {0x1.193ea7aad030bp+0, -0x1.a256f99caabebp-54}},
      {1e300, {0x1.5963447f87fb5p+9, 0x1.abccc0710fcd4p-46}},
      {1e-300, {-0x1.5963447f87fb5p+9, -0x1.aa670d35324e6p-46}},
  };
  for (const auto& [x, value] : kTruth) EXPECT_LT(error(log(x), value), 0x1p-105) << x;
  const Real near_one{0x1.ad7f2847b6492p-24, 0x1.d7f4a57fcf3ddp-80};
  EXPECT_LT(std::fabs(double(log(1.0000001) - near_one)), 0x1p-115);
  EXPECT_EQ(double(log(1.0)), 0);
}

TEST(Real, PowKeeps100Bits) {
  const struct {
    double x, y;
    Real value;
  } kTruth[] = {
      {10000.0, -0.5, {0x1.47ae147ae147bp-7, -0x1.eb851eb851eb8p-63}},
      {10000.0, -0.015625, {0x1.bb5fad00ab22cp-1, 0x1.a1cecee7dcb25p-58}},
      {500000.0, -0.984375, {0x1.4985fec80a8cbp-19, 0x1.6c73194a65546p-78}},
      {1e7, -0.25, {0x1.235a71c5ee5ccp-6, -0x1.6e187bf82451ap-60}},
      {10.0, 3.0, {1000.0, 0}},
      {10.0, -6.0, {0x1.0c6f7a0b5ed8dp-20, 0x1.b5a63f9a49c2cp-75}},
      {2.0, 0.5, {0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54}},
  };
  for (const auto& [x, y, value] : kTruth) {
    EXPECT_LT(error(pow(x, y), value), 0x1p-105 * (1 + std::fabs(y * std::log(x))))
        << x << "^" << y;
  }
  EXPECT_EQ(double(pow(10000.0, 0.0) - 1), 0);
}

TEST(Real, RefusesWhatHasNoLogarithm) {
  EXPECT_THROW(log(0.0), Error);
  EXPECT_THROW(log(-1.0), Error);
  EXPECT_THROW(log(std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW(pow(std::numeric_limits<double>::quiet_NaN(), 1.0), Error);
  EXPECT_THROW(pow(2.0, std::numeric_limits<double>::infinity()), Error);
}

}  // namespace
}  // namespace sextant
