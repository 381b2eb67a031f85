#include "bench/reading/decode_products.h"

#include <algorithm>
#include <vector>

#include "sextant/attention/cpu/forward.h"
#include "sextant/attention/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/reading/decode_products.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/joined-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench {
namespace HWY_NAMESPACE {
using namespace cpu;
using namespace cpu::HWY_NAMESPACE;

// copy: room for a unit of keys or values.
void multiply_head(const Problem& p, int64_t key_head, const Joined& joined, float* copy) {
  const Run unit = {0, kUnit};
  for (int64_t first = 0; first < kCachedKeys; first += kUnit) {
    const FrameRows rows = {p, p.blocks[0], Side::kKey, first, kUnit};
    const JoinedUnit keys = {rows, key_head, unit, kCachedKeys - first,
                             rows_at_once(p.score, p.group)};
    multiply_plain_keys(keys, unit, p.group, 0, copy, joined);
    mix_joined(keys, unit, p.group, copy, joined);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {
HWY_EXPORT(multiply_head);

// Memory of a worker: queries and weights, all of them one small number.
class Scratch {
 public:
  explicit Scratch(const cpu::Problem& p) : Scratch(p, measured(p)) {}

  const cpu::Joined& joined() const { return joined_; }
  float* copy() { return copy_.data(); }

 private:
  Scratch(const cpu::Problem& p, int64_t size)
      : numbers_(size), copy_(cpu::kUnit * std::max(p.depth16, p.width16)), joined_(lay_out(p)) {
    std::fill_n(joined_.queries[0], joined_.rows16 * p.depth16, kNumber);
    std::fill_n(joined_.weight_panels, joined_.rows16 * cpu::kUnit, kNumber);
  }
  static int64_t measured(const cpu::Problem& p) {
    cpu::Carver measure;
    cpu::Joined(p, 1, measure);
    return measure.used();
  }
  cpu::Joined lay_out(const cpu::Problem& p) {
    cpu::Carver carver(numbers_.data());
    return {p, 1, carver};
  }

  static constexpr float kNumber = 1e-3F;
  Floats numbers_, copy_;
  cpu::Joined joined_;
};

}  // namespace

void multiply_cached(std::span<const float> numbers, const DecodeSizes& sizes,
                     const Executor& executor) {
  const int64_t heads = static_cast<int64_t>(numbers.size()) / numbers_of_head(sizes.columns);
  const auto rows = [&](const float* data, int64_t all_heads, int64_t count) -> View<const float> {
    return {data, 1, all_heads, count, sizes.columns, 0, count * sizes.columns, sizes.columns, 1};
  };
  const Run all_keys = {0, kCachedKeys};
  Score<float> score;
  score.q = rows(numbers.data(), heads * sizes.group, 1);
  score.k = rows(numbers.data(), heads, kCachedKeys);
  score.v = rows(numbers.data() + numbers.size() / 2, heads, kCachedKeys);
  score.frames = {{.queries = 1, .query_position = kCachedKeys - 1, .keys = kCachedKeys}};
  score.sweeps = {{.runs = &all_keys}};
  const cpu::Problem problem(score, cpu::Pass::kForward, cpu::kUnit, executor);
  std::vector<Scratch> scratches;
  scratches.reserve(static_cast<size_t>(executor.workers()));
  for (int worker = 0; worker < executor.workers(); ++worker) scratches.emplace_back(problem);
  executor.run(heads, [&](int64_t head, int worker) {
    Scratch& scratch = scratches[static_cast<size_t>(worker)];
    HWY_DYNAMIC_DISPATCH(multiply_head)(problem, head, scratch.joined(), scratch.copy());
  });
}

}  // namespace sextant::bench
#endif
