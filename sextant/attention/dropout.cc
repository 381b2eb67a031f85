#include "sextant/attention/dropout.h"

#include "sextant/attention/dropout_words.h"
#include "sextant/base/random.h"

namespace sextant {

bool keeps(const Dropout& d, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t row = d.first_key + j, key = row % kDropoutKeys;
  const PhiloxBlock words =
      philox4x32({static_cast<uint32_t>(8 * (row / kDropoutKeys) + key / 2 % 8),
                  static_cast<uint32_t>(d.first_query + i), static_cast<uint32_t>(h),
                  static_cast<uint32_t>(d.first_batch + b)},
                 philox_key(d.seed));
  const uint32_t word = words[static_cast<size_t>(key / 16 * 2 + key % 2)];
  return static_cast<int32_t>(word) >= least_kept(d);
}

}  // namespace sextant
