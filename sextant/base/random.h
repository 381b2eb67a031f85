// Stateless random numbers: the n-th number of a stream is a function of (seed, stream, n).
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). An interrupted training run has no generator state to restore, an additional
// parameter of a method does not change the initial values of other parameters, and every method
// sees the same batches in the same order.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace sextant {

using PhiloxBlock = std::array<uint32_t, 4>;

using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxFactors[2] = {0xD2511F53, 0xCD9E8D57};  // of words 0 and 2

// The key of the next round. The steps are the golden ratio and sqrt(3) - 1, as in the paper.
constexpr PhiloxKey next_philox_key(PhiloxKey key) {
  return {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
}

constexpr PhiloxKey philox_key(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

constexpr PhiloxBlock philox4x32(PhiloxBlock x, PhiloxKey key) {
  const auto high = [](uint64_t product) { return static_cast<uint32_t>(product >> 32); };
  const auto low = [](uint64_t product) { return static_cast<uint32_t>(product); };
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t a = uint64_t{kPhiloxFactors[0]} * x[0];
    const uint64_t b = uint64_t{kPhiloxFactors[1]} * x[2];
    x = {high(b) ^ x[1] ^ key[0], low(b), high(a) ^ x[3] ^ key[1], low(a)};
    key = next_philox_key(key);
  }
  return x;
}

class CounterRandom {
 public:
  // Streams of one seed are independent. A stream is named by its purpose ("batches", "init/head").
  CounterRandom(uint64_t seed, std::string_view stream) : seed_(seed), stream_(fnv(stream)) {}

  // Uniform over 0 to 2^64 - 1.
  uint64_t bits(uint64_t n) const { return first(block(n)); }

  // Uniform over 0 to limit - 1, limit >= 1: the high half of bits * limit, biased by less than
  // limit / 2^64.
  uint64_t below(uint64_t limit, uint64_t n) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(static_cast<Wide>(bits(n)) * limit >> 64);
  }

  // Uniform in (0, 1), with 52 random bits.
  double uniform(uint64_t n) const { return unit(bits(n)); }

  // Normal with mean 0 and variance 1 (Box and Muller 1958; the second value of the pair is
  // dropped).
  double normal(uint64_t n) const {
    const PhiloxBlock both = block(n);
    const double angle = 2 * std::numbers::pi * unit(second(both));
    return std::sqrt(-2 * std::log(unit(first(both)))) * std::cos(angle);
  }

 private:
  static uint64_t first(const PhiloxBlock& block) {
    return block[0] | static_cast<uint64_t>(block[1]) << 32;
  }
  static uint64_t second(const PhiloxBlock& block) {
    return block[2] | static_cast<uint64_t>(block[3]) << 32;
  }
  static double unit(uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }
  static uint64_t fnv(std::string_view text) {  // FNV-1a
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    return hash;
  }

  PhiloxBlock block(uint64_t n) const {
    const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
    const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
    return philox4x32({low(n), high(n), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  }

  uint64_t seed_, stream_;
};

}  // namespace sextant
