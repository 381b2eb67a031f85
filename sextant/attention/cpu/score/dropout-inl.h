// The weights of a strip that dropout drops (sextant/attention/dropout_words.h), a bit for each.
//
// A vector holds calls of Philox4x32-10 in its even lanes, because a product of two words has two.
// Most of the first three rounds is the same for all rows of a strip, or for all of its keys:
//
//   words of a counter     0: keys     1: row     2: head     3: entry
//
//   round 1   word 0 depends on the row alone, 1 is one number, 2 and 3 depend on the keys alone
//   round 2   words 0 and 1 depend on the keys alone, 3 on the row alone
//   round 3   word 3 depends on the keys alone
#if defined(SEXTANT_ATTENTION_CPU_SCORE_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORE_DROPOUT_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORE_DROPOUT_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORE_DROPOUT_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/score/strip.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/softmax-inl.h"
#include "sextant/attention/dropout_words.h"
#include "sextant/base/random.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

using U32 = hn::RebindToUnsigned<F32>;
using Words = hn::Vec<U32>;

HWY_INLINE const Dropout& dropout_of(const Strip& s) { return s.problem.score.dropout; }
// The call's rows of the strip's first query, and of column 0.
HWY_INLINE int64_t first_row(const Strip& s) {
  return s.queries.block->frame.query_row + s.queries.first + s.row;
}
HWY_INLINE int64_t first_key(const Strip& s) {
  return s.queries.block->frame.key_row + s.keys.keys.first;
}

// The keys of the ten rounds, and what follows from the counters of a strip before any key.
struct StripCounters {
  uint32_t of_0[kPhiloxRounds], of_2[kPhiloxRounds];  // keys, combined with words 0 and 2
  uint32_t entry, word_1;                             // word 3, and word 1 after the first round
  uint64_t rows[kStrip];  // the product of word 0 after the first round, of each row
  int32_t least;

  explicit StripCounters(const Strip& s)
      : entry(static_cast<uint32_t>(dropout_of(s).first_batch + s.queries.block->frame.batch)),
        least(least_kept(dropout_of(s))) {
    auto key = philox_key(dropout_of(s).seed);
    for (int n = 0; n < kPhiloxRounds; ++n) {
      of_0[n] = key[0];
      of_2[n] = key[1];
      key = next_philox_key(key);
    }
    const uint64_t head = uint64_t{kPhiloxFactors[1]} * static_cast<uint32_t>(s.queries.head);
    word_1 = static_cast<uint32_t>(head);
    for (int64_t i = 0; i < kStrip; ++i) {
      const auto row = static_cast<uint32_t>(dropout_of(s).first_query + first_row(s) + i);
      rows[i] = uint64_t{kPhiloxFactors[0]} * (static_cast<uint32_t>(head >> 32) ^ row ^ of_0[0]);
    }
  }
};

#if HWY_TARGET != HWY_SCALAR

// The high halves of products, in the even lanes.
HWY_INLINE Words high(Words products) { return hn::DupOdd(products); }
HWY_INLINE Words multiply_words(Words x, uint32_t factor) {
  return hn::BitCast(U32(), hn::MulEven(x, hn::Set(U32(), factor)));
}

// The state of the calls of some keys after three rounds, as far as all rows of a strip share it;
// x2_before belongs to round 2.
struct SharedRounds {
  Words x2_before, x0, x2, x3;

  // calls: word 0 of the counters.
  SharedRounds(const StripCounters& by, Words calls) {
    const U32 d;
    const Words a = multiply_words(calls, kPhiloxFactors[0]);
    const Words b =
        multiply_words(hn::Xor(high(a), hn::Set(d, by.entry ^ by.of_2[0])), kPhiloxFactors[1]);
    x2_before = hn::Xor(a, hn::Set(d, by.of_2[1]));
    x0 = hn::Xor(b, hn::Set(d, by.of_0[2]));
    x3 = multiply_words(hn::Xor(high(b), hn::Set(d, by.word_1 ^ by.of_0[1])), kPhiloxFactors[0]);
    x2 = hn::Xor(high(x3), hn::Set(d, by.of_2[2]));
  }
};

// Finishes the calls of some keys for kRows rows from `first` on. Calls store_words(row, words 0
// and 1, words 2 and 3), with the words in order of the keys.
template <int kRows, class Store>
HWY_INLINE void finish_rounds(const StripCounters& by, const SharedRounds& shared, int64_t first,
                              Store&& store_words) {
  const U32 d;
  Words x[kRows][4];
  for (int i = 0; i < kRows; ++i) {
    const uint64_t row = by.rows[first + i];
    const auto upper = static_cast<uint32_t>(row >> 32), lower = static_cast<uint32_t>(row);
    const Words b = multiply_words(hn::Xor(shared.x2_before, hn::Set(d, upper)), kPhiloxFactors[1]);
    x[i][0] = hn::Xor(high(b), shared.x0);
    x[i][1] = b;
    x[i][2] = hn::Xor(shared.x2, hn::Set(d, lower));
    x[i][3] = shared.x3;
  }
  for (int n = 3; n < kPhiloxRounds; ++n) {
    const Words of_0 = hn::Set(d, by.of_0[n]), of_2 = hn::Set(d, by.of_2[n]);
    for (int i = 0; i < kRows; ++i) {
      const Words a = multiply_words(x[i][0], kPhiloxFactors[0]);
      const Words b = multiply_words(x[i][2], kPhiloxFactors[1]);
      x[i][0] = hn::Xor3(high(b), x[i][1], of_0);
      x[i][1] = b;
      x[i][2] = hn::Xor3(high(a), x[i][3], of_2);
      x[i][3] = a;
    }
  }
  for (int i = 0; i < kRows; ++i)
    store_words(first + i, hn::OddEven(hn::DupEven(x[i][1]), x[i][0]),
                hn::OddEven(hn::DupEven(x[i][3]), x[i][2]));
}

// Writes the bits of a vector's lanes at bit `at` of `to`; vectors of a byte come in order.
template <class Mask>
HWY_INLINE void store_bits(Mask mask, int64_t at, uint8_t* to) {
  if constexpr (kVectorLanes >= 8) {
    hn::StoreMaskBits(F32(), mask, to + at / 8);
  } else {
    uint8_t some[8] = {};
    hn::StoreMaskBits(F32(), mask, some);
    to[at / 8] = static_cast<uint8_t>((at % 8 == 0 ? 0 : to[at / 8]) | *some << at % 8);
  }
}

// Writes the bits of kDropoutKeys keys, the n-th such block of the generator, for all rows of a
// strip: to[row * DroppedColumns::kBytes].
HWY_INLINE void drop_keys(const StripCounters& by, int64_t n, uint8_t* to) {
  constexpr int kTogether = kVectors == 1 ? 4 : 2;  // rows whose state fits into registers
  constexpr int64_t kCalls = kVectorLanes / 2;
  const Words each = hn::ShiftRight<1>(hn::Iota(U32(), 0));
  for (int64_t call = 0; call < kDropoutKeys / 4; call += kCalls) {
    const auto first = static_cast<uint32_t>(kDropoutKeys / 4 * n + call);
    const SharedRounds shared(by, hn::Add(each, hn::Set(U32(), first)));
    const auto store_words = [&](int64_t row, Words lower, Words upper) HWY_ATTR {
      const auto dropped = [&](Words words) HWY_ATTR {
        return hn::RebindMask(F32(), hn::Lt(hn::BitCast(I32(), words), hn::Set(I32(), by.least)));
      };
      uint8_t* const bits = to + row * DroppedColumns::kBytes;
      store_bits(dropped(lower), 2 * call, bits);
      store_bits(dropped(upper), 2 * call + kDropoutKeys / 2, bits);
    };
    for (int64_t i = 0; i < kStrip; i += kTogether)
      finish_rounds<kTogether>(by, shared, i, store_words);
  }
}

#endif

// Finds the dropped weights of a strip's columns.
inline HWY_NOINLINE void find_dropped(const Strip& s, DroppedColumns& to) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < s.rows; ++i)
    for (int64_t j = s.columns.first; j < s.columns.last; ++j) {
      uint8_t& byte = to.row(i)[j / 8];
      const bool dropped = !keeps(dropout_of(s), s.queries.block->frame.batch, s.queries.head,
                                  first_row(s) + i, first_key(s) + j);
      byte = static_cast<uint8_t>((j % 8 == 0 ? 0 : byte) | (dropped ? 1 : 0) << j % 8);
    }
#else
  const StripCounters by(s);
  // Blocks of keys begin `before` columns before the unit does.
  const int64_t key = dropout_of(s).first_key + first_key(s), before = key % kDropoutKeys;
  for (int64_t n = (s.columns.first + before) / kDropoutKeys;
       n * kDropoutKeys < s.columns.last + before; ++n)
    drop_keys(by, key / kDropoutKeys + n, to.row(0) + n * kDropoutKeys / 8);
  if (before == 0) return;
  for (int64_t i = 0; i < s.rows; ++i) {
    uint8_t* const byte = to.row(i);
    for (int64_t j = s.columns.first / 8; j < s.columns.last / 8; ++j) {
      const int64_t at = j + before / 8;
      byte[j] = static_cast<uint8_t>((byte[at] | byte[at + 1] << 8) >> before % 8);
    }
  }
#endif
}

// Calls f(KeepAll()), or f(Drop()) with dropout and then writes the sums of each row's weights.
template <class F>
HWY_INLINE void with_dropout(const Strip& s, float* row_sum, F&& f) {
  if (!s.problem.score.dropout) {
    KeepAll keep;
    return f(keep);
  }
  Drop drop;
  find_dropped(s, drop.columns());
  f(drop);
  drop.write_sums(s.rows, row_sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
