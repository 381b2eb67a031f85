#include "sextant/position/spectrum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "sextant/base/error.h"

namespace sextant {
namespace {

// float32(value) - truth| in units in the last place of a float32 of truth's size.
double float32_ulps(double value, double truth) {
  const auto size = static_cast<float>(std::fabs(truth));
  const double ulp = std::nextafter(size, HUGE_VALF) - size;
  return std::fabs(static_cast<float>(value) - truth) / ulp;
}

// Angles position * base^(-2 pair / dim) by mpmath at 400 bits. The first three of each group come
// from continued fractions: among all positions below 2^31 and all pairs of the spectrum, they are
// closest to a zero of cos or sin, where a phase known to 64 bits is wrong by many ulp.
TEST(Spectrum, HardestPositionsRoundRight) {
  const struct {
    double base;
    int64_t dim;
    size_t pair;
    int64_t position;
    double cos, sin;
  } kTruth[] = {
      {100000, 128, 5, 1715512116, -2.241951470807936e-14, 1.0},
      {10000, 64, 10, 300281868, -1.6464665980977062e-11, -1.0},
      {10000, 64, 2, -150140934, -8.232332990488531e-11, 1.0},
      {10000, 64, 15, 42913089, 1.2795884814559568e-10, 1.0},
      {10000, 64, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {10000, 64, 11, -2147483647, -0.4375526286226189, -0.8991928031214643},
      {10000, 64, 9, 864654215, -0.8050277618791398, -0.5932371385911901},
      {10000, 64, 31, 2147483647, -0.9455589570370937, 0.325450854610836},
      {10000, 128, 20, 300281868, -1.6464665980977062e-11, -1.0},
      {10000, 128, 13, -1606871104, -3.556806247147122e-11, 1.0},
      {10000, 128, 59, 1628307328, 4.489230744614725e-11, -1.0},
      {10000, 128, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {10000, 128, 42, -2147483647, -0.6370619890616727, -0.7708125726094414},
      {10000, 128, 6, 172332953, -0.9411591097422378, 0.33796380005734095},
      {10000, 128, 63, 2147483647, -0.9371242803736638, 0.34899582108406807},
      {500000, 64, 26, 2031371070, -5.107010899890085e-11, -1.0},
      {500000, 64, 14, -1800908777, 1.0, -6.685205857197781e-11},
      {500000, 64, 19, 1001016822, 8.917347363218444e-11, 1.0},
      {500000, 64, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {500000, 64, 27, -2147483647, 0.4742244726392747, 0.8804039695219472},
      {500000, 64, 6, 802088188, 0.5673785189242134, -0.8234571125828994},
      {500000, 64, 31, 2147483647, 0.8626909259697435, 0.505731515974105},
      {500000, 128, 19, 207310577, -1.5824503793915184e-11, -1.0},
      {500000, 128, 51, -1932017863, 3.065623865721886e-11, -1.0},
      {500000, 128, 41, 1395741287, -1.0, 4.643249811911538e-11},
      {500000, 128, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {500000, 128, 38, -2147483647, -0.7383346465994362, -0.6744345406567532},
      {500000, 128, 7, 1970351818, -0.19148885884891606, -0.9814947870145515},
      {500000, 128, 63, 2147483647, 0.7093453517463271, 0.7048611011794306},
      {1000000, 64, 24, 517294011, -1.0, 9.459248290120513e-11},
      {1000000, 64, 23, -464270621, 1.074033959192881e-10, -1.0},
      {1000000, 64, 10, 42913089, 1.2795884814559568e-10, 1.0},
      {1000000, 64, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {1000000, 64, 17, -2147483647, -0.6700700690028942, -0.7422978530390996},
      {1000000, 64, 13, 97298540, 0.31689629253506846, 0.9484601940922605},
      {1000000, 64, 31, 2147483647, -0.42663092460941104, 0.9044258146287727},
      {1000000, 128, 45, 1640417123, 1.0, -2.345691373118039e-11},
      {1000000, 128, 48, -517294011, -1.0, -9.459248290120513e-11},
      {1000000, 128, 55, 171073787, 1.0, -9.944235131602117e-11},
      {1000000, 128, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {1000000, 128, 6, -2147483647, -0.9442216604589403, 0.32931057669039676},
      {1000000, 128, 55, 914795085, 0.9999934484212669, 0.0036198224463361967},
      {1000000, 128, 63, 2147483647, 0.6800408954339748, 0.733174181581265},
      {10000000, 64, 7, 363963658, 3.819614163106242e-11, 1.0},
      {10000000, 64, 10, -1066802854, 6.397095993647118e-11, -1.0},
      {10000000, 64, 13, 2042263946, 8.007538858237846e-11, 1.0},
      {10000000, 64, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {10000000, 64, 3, -2147483647, 0.9107190840739109, -0.41302633076303596},
      {10000000, 64, 15, 211581932, -0.08289336592191945, -0.9965584227159664},
      {10000000, 64, 31, 2147483647, -0.9325816070765048, -0.36095920287839106},
      {10000000, 128, 9, 987011947, -4.798776808275398e-12, -1.0},
      {10000000, 128, 41, -378021789, -1.1345799277933312e-11, -1.0},
      {10000000, 128, 14, 363963658, 3.819614163106242e-11, 1.0},
      {10000000, 128, 0, 2147483647, -0.6888366918779438, -0.7249165551445564},
      {10000000, 128, 36, -2147483647, -0.9371242803736638, -0.34899582108406807},
      {10000000, 128, 54, 143716059, -0.7464422282483733, 0.6654502234484585},
      {10000000, 128, 63, 2147483647, 0.9783397644126866, -0.20700556844908524},
  };
  for (const auto& [base, dim, pair, position, cos, sin] : kTruth) {
    const Rotation rope = rotation(rotary({.dim = dim, .base = base}));
    const CosSin value = cos_sin(rope.pairs[pair].frequency * position);
    EXPECT_LE(float32_ulps(value.cos, cos), 0.501) << base << " " << pair << " " << position;
    EXPECT_LE(float32_ulps(value.sin, sin), 0.501) << base << " " << pair << " " << position;
  }
}

// Frequencies in turns, rounded to 64 bits, from golden/rotary/rope_phase_u64, by mpmath at 300
// bits.
TEST(Spectrum, FrequenciesAreExactTurns) {
  const struct {
    double base;
    size_t pair;
    uint64_t turn;
  } kTruth[] = {
      {1e4, 0, 0x28be60db9391054a}, {1e4, 1, 0x234855e55644662f}, {1e4, 20, 0x24a8b144acc0654},
      {1e4, 63, 0x13458e2f59024},   {5e5, 1, 0x2130c415f3514ea0}, {5e5, 20, 0xacbb4dc9a23f60},
      {5e5, 63, 0x68e3fbde7a8},     {1e7, 1, 0x1fac361d1e5fd64b}, {1e7, 20, 0x43bba356e4aa55},
      {1e7, 63, 0x57ef024241},
  };
  for (const auto& [base, pair, turn] : kTruth) {
    const Turns frequency = rotation(rotary({.dim = 128, .base = base})).pairs[pair].frequency;
    EXPECT_EQ(frequency.high + (frequency.low >> 63), turn) << base << " " << pair;
  }
}

// Phases agree with 64-bit long doubles as far as these represent the angle.
TEST(Spectrum, PhasesAgreeWithLongDouble) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is double here";
  std::mt19937_64 random(1);
  for (const double base : {1e4, 5e5, 1e6, 1e7}) {
    for (const int64_t dim : {2, 64, 80, 128}) {
      const Rotation rope = rotation(rotary({.dim = dim, .base = base}));
      for (int i = 0; i < 2000; ++i) {
        const size_t pair = random() % rope.pairs.size();
        const auto position = static_cast<int64_t>(random() % (1 << 25)) - (1 << 24);
        const long double angle = position * std::pow(static_cast<long double>(base),
                                                      -2 * static_cast<long double>(pair) / dim);
        const CosSin value = cos_sin(rope.pairs[pair].frequency * position);
        EXPECT_NEAR(value.cos, static_cast<double>(std::cos(angle)), 1e-11);
        EXPECT_NEAR(value.sin, static_cast<double>(std::sin(angle)), 1e-11);
      }
    }
  }
}

TEST(Spectrum, PairingsNameTheirColumns) {
  const Spectrum half = rotary({.dim = 6, .first_column = 10});
  EXPECT_EQ(half.pairs[1].first, 11);
  EXPECT_EQ(half.pairs[1].second, 14);
  const Spectrum interleaved = rotary({.dim = 6, .pairing = Pairing::kInterleaved});
  EXPECT_EQ(interleaved.pairs[1].first, 2);
  EXPECT_EQ(interleaved.pairs[1].second, 3);
  EXPECT_EQ(interleaved.pairs.size(), 3u);
  EXPECT_TRUE(rotary({.dim = 0}).pairs.empty());
}

TEST(Spectrum, RotationKeepsWhatIsNotAFrequency) {
  Spectrum spectrum = rotary({.dim = 4});
  spectrum.gain = 1.25;
  spectrum.pairs[1].growth = -0.5;
  spectrum.pairs[1].axis = 2;
  const Rotation result = rotation(spectrum);
  EXPECT_EQ(result.gain, 1.25);
  EXPECT_EQ(result.pairs[1].growth, -0.5);
  EXPECT_EQ(result.pairs[1].axis, 2);
  EXPECT_EQ(result.pairs[1].first, 1);
  EXPECT_EQ(result.pairs[1].second, 3);
}

TEST(Spectrum, Float32FrequenciesAreTheNearestFloats) {
  const Spectrum exact = rotary({.dim = 128, .base = 5e5});
  const Spectrum rounded = rotary({.dim = 128, .base = 5e5, .float32_frequencies = true});
  for (size_t f = 0; f < exact.pairs.size(); ++f) {
    const Real frequency = rounded.pairs[f].frequency;
    EXPECT_EQ(frequency.low, 0);
    EXPECT_EQ(frequency.high, static_cast<float>(frequency.high));
    EXPECT_LE(float32_ulps(frequency.high, exact.pairs[f].frequency.high), 0.5);
  }
}

TEST(Spectrum, TurnsOfRadians) {
  constexpr Real kTurn{0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};  // 2 pi, to 2^-106
  for (const unsigned quarters : {1u, 2u, 4u}) {
    const Turns expected{uint64_t{quarters} << 62, 0};
    const Turns error = turns(kTurn * (quarters * 0.25)) + Turns{0, uint64_t{1} << 24} - expected;
    EXPECT_EQ(error.high, 0u);
    EXPECT_LT(error.low, uint64_t{1} << 25);
  }
  EXPECT_EQ(turns(0.0), Turns{});
  EXPECT_EQ(turns(-1.0), Turns{} - turns(1.0));
  EXPECT_EQ(turns({1.0, -0x1p-60}), turns(1.0) - turns(0x1p-60));
  EXPECT_EQ(turns(1e-300), Turns{});
}

// A double is an integer times a power of two, so its turns are that integer times an exact turn.
TEST(Spectrum, LargeAnglesLoseNothing) {
  for (int exponent = 0; exponent < 63; ++exponent) {
    const Turns direct = turns(std::ldexp(1.0, exponent));
    const Turns wrapped = turns(1.0) * (int64_t{1} << exponent);
    // turns(1) has an error of up to 2^-129, so the product has up to 2^exponent times that.
    const Turns error = direct - wrapped;
    const uint64_t kBound = uint64_t{1} << exponent;
    EXPECT_TRUE((error.high == 0 && error.low <= kBound) ||
                (error.high == ~uint64_t{0} && error.low >= -kBound))
        << exponent;
  }
}

TEST(Spectrum, RefusesImpossibleOptions) {
  EXPECT_THROW(rotary({.dim = 7}), Error);
  EXPECT_THROW(rotary({.dim = -2}), Error);
  EXPECT_THROW(rotary({.dim = int64_t{1} << 40}), Error);
  EXPECT_THROW(rotary({.dim = 8, .first_column = -1}), Error);
  EXPECT_THROW(rotary({.dim = 8, .base = 0}), Error);
  EXPECT_THROW(rotary({.dim = 8, .base = -1}), Error);
  EXPECT_THROW(rotary({.dim = 8, .base = std::numeric_limits<double>::quiet_NaN()}), Error);
  EXPECT_THROW(rotary({.dim = 8, .base = std::numeric_limits<double>::infinity()}), Error);
  EXPECT_THROW(turns(std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW(turns(0x1p64), Error);
  EXPECT_THROW(turns(std::numeric_limits<double>::quiet_NaN()), Error);
}

}  // namespace
}  // namespace sextant
