// The instructions of this processor, and the target that they allow. The conditions are those of
// Highway, whose library has the same functions.
#include "sextant/base/simd/target.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "sextant/base/error.h"
#include "sextant/base/simd/targets.h"

// targets.h comes first.
#include <hwy/targets.h>
#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace sextant {
namespace {

constexpr uint32_t bits(std::initializer_list<int> places) {
  uint32_t all = 0;
  for (const int place : places) all |= uint32_t{1} << place;
  return all;
}

int64_t detected() {
  int64_t targets = HWY_ENABLED_BASELINE;
#ifdef HWY_EMU128
  targets |= HWY_EMU128;
#endif
  targets |= HWY_SCALAR;
#if HWY_ARCH_X86
  struct {
    uint32_t a = 0, b = 0, c = 0, d = 0;
  } one, seven, more, extended;
  __get_cpuid(1, &one.a, &one.b, &one.c, &one.d);
  __get_cpuid_count(7, 0, &seven.a, &seven.b, &seven.c, &seven.d);
  if (seven.a >= 1) __get_cpuid_count(7, 1, &more.a, &more.b, &more.c, &more.d);
  __get_cpuid(0x80000001, &extended.a, &extended.b, &extended.c, &extended.d);
  uint32_t saved = 0, unused = 0;  // the registers that the system saves (XCR0)
  if (one.c & bits({27})) __asm__("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));
  const auto add = [&](int64_t target, bool has) {
    targets |= has ? target : 0;
    return has;
  };
  const auto all = [](uint32_t word, uint32_t of) { return (word & of) == of; };
  // SSE3, SSSE3; SSE4.1, SSE4.2, PCLMUL, AES
  bool has = add(HWY_SSSE3, all(one.c, bits({0, 9})));
  has = add(HWY_SSE4, has && all(one.c, bits({1, 19, 20, 25})));
  // FMA, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
  has = add(HWY_AVX2, has && all(saved, bits({1, 2})) && all(one.c, bits({12, 28, 29})) &&
                          all(seven.b, bits({3, 5, 8})) && all(extended.c, bits({5})));
  // AVX512 F, DQ, CD, BW, VL
  has =
      add(HWY_AVX3, has && all(saved, bits({5, 6, 7})) && all(seven.b, bits({16, 17, 28, 30, 31})));
  // VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ, VNNI, BITALG, VPOPCNTDQ
  has = add(HWY_AVX3_DL, has && all(seven.c, bits({1, 6, 8, 9, 10, 11, 12, 14})));
#ifdef HWY_AVX3_ZEN4
  has = add(HWY_AVX3_ZEN4, has && all(more.a, bits({5})));  // BF16
#endif
#ifdef HWY_AVX3_SPR
  add(HWY_AVX3_SPR, has && all(seven.d, bits({23})));  // FP16
#endif
#elif HWY_ARCH_ARM && defined(HWCAP_AES)
  if (::getauxval(AT_HWCAP) & HWCAP_AES) targets |= HWY_NEON;
#endif
  return targets & HWY_TARGETS;
}

constexpr int64_t best(int64_t targets) { return targets & -targets; }  // the lowest bit

// The targets that SEXTANT_SIMD allows.
int64_t allowed() {
  const int64_t targets = detected();
  const char* const name = std::getenv("SEXTANT_SIMD");
  if (!name) return targets;
  std::string names;
  for (int64_t rest = targets; rest != 0; rest -= best(rest)) {
    if (hwy::TargetName(best(rest)) == std::string_view(name)) return rest;
    names += (names.empty() ? "" : ", ") + std::string(hwy::TargetName(best(rest)));
  }
  fail("SEXTANT_SIMD: expected one of " + names + ", but got \"" + name + "\"");
}

std::atomic<int64_t> limit = 0;

int64_t in_use() {
  static const int64_t targets = allowed();
  const int64_t limited = limit.load(std::memory_order_relaxed);
  return best(limited != 0 ? limited : targets);
}

}  // namespace

std::string_view simd_target() { return hwy::TargetName(in_use()); }

int64_t simd_targets() { return detected(); }

void limit_simd_targets(int64_t targets) { limit = targets; }

size_t simd_target_index() {
  hwy::ChosenTarget chosen;
  chosen.Update(in_use());
  return chosen.GetIndex();
}

}  // namespace sextant
