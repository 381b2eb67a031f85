// The factors of dropout, as attention/dropout_words.h counts them: Philox4x32-10, whose call
// (keys, query row, head, entry) gives the words of four keys.
#pragma once

#include "sextant/attention/cuda/kernels/device.cuh"

namespace sextant::cuda {

SEXTANT_DEVICE void philox(uint32_t (&x)[4], uint32_t key_low, uint32_t key_high) {
  SEXTANT_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53U} * x[0], b = uint64_t{0xCD9E8D57U} * x[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(b >> 32) ^ x[1] ^ key_low, static_cast<uint32_t>(b),
        static_cast<uint32_t>(a >> 32) ^ x[3] ^ key_high, static_cast<uint32_t>(a)};
    SEXTANT_UNROLL
    for (int n = 0; n < 4; ++n) x[n] = next[n];
    key_low += 0x9E3779B9U;
    key_high += 0xBB67AE85U;
  }
}

// Whether the weight of rows i and j is kept.
SEXTANT_DEVICE bool keeps(const DropoutWords& d, int32_t b, int32_t h, int64_t i, int64_t j) {
  const int64_t row = d.first_key + j;
  const int key = static_cast<int>(row % 32);
  uint32_t words[4] = {static_cast<uint32_t>(8 * (row / 32) + key / 2 % 8),
                       static_cast<uint32_t>(d.first_query + i), static_cast<uint32_t>(h),
                       static_cast<uint32_t>(d.first_batch + b)};
  philox(words, d.key_low, d.key_high);
  const int n = key / 16 * 2 + key % 2;
  const uint32_t word = n == 0 ? words[0] : n == 1 ? words[1] : n == 2 ? words[2] : words[3];
  return static_cast<int32_t>(word) >= d.least_kept;
}

}  // namespace sextant::cuda
