#include "bench/decode/engine.h"

#include <memory>
#include <optional>

#include "sextant/cache/decoding.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/spectrum.h"

namespace sextant::bench {
namespace {

int64_t element_size(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

// Values between -1 and 1 that the types of caches hold.
float value(int64_t n) { return static_cast<float>((n * 2654435761) % 255 - 127) / 128; }

void fill(DType dtype, std::span<std::byte> bytes) {
  const auto write = [&]<class Number>(Number* to) {
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(Number));
    for (int64_t n = 0; n < count; ++n) to[n] = narrowed<Number>(value(n));
  };
  if (dtype == DType::kBfloat16)
    write(reinterpret_cast<Bfloat16*>(bytes.data()));
  else if (dtype == DType::kFloat16)
    write(reinterpret_cast<Float16*>(bytes.data()));
  else
    write(reinterpret_cast<float*>(bytes.data()));
}

// Caches with the data of all layers, and one decoding for them.
class Step {
 public:
  Step(const DecodeData& data, Positions positions, const Executor& executor, std::span<float> out)
      : data_(data),
        rope_(rotation(rotary({.dim = data.sizes.head_dim}))),
        out_(out),
        lse_(static_cast<size_t>(data.sizes.heads)) {
    const DecodeSizes& s = data.sizes;
    const bool held = positions == Positions::kRopeRotatedKeys;
    for (int64_t layer = 0; layer < s.layers; ++layer) {
      KvCache& cache = caches_.emplace_back(KvCacheShape{.key_heads = s.key_heads,
                                                         .key_columns = s.head_dim,
                                                         .value_columns = s.head_dim,
                                                         .dtype = s.dtype,
                                                         .int8 = s.int8});
      cache.add(0, held ? std::optional(rope_) : std::nullopt);
      cache.reserve(0, s.keys);
      // The time does not depend on the values, so keys need no rotation.
      cache.append_stored(0, data.keys(layer), data.values(layer));
    }
    decoding_.emplace(
        caches_[0],
        std::vector<CachedBatch::Entry>{{0, positions == Positions::kNone ? nullptr : &rope_}},
        DecodingShape{.heads = s.heads, .most_rows = s.keys}, RowMaps(), cpu_backend(), executor);
  }

  void run() {
    const DecodeSizes& s = data_.sizes;
    decoding_->step(caches_[0]);
    for (const KvCache& cache : caches_)
      decoding_->attend(cache, {.q = data_.query(), .scale = s.scale()},
                        {.out = contiguous(out_, {1, s.heads, 1, s.head_dim}),
                         .lse = contiguous(lse_, {1, s.heads, 1, 1})});
  }

 private:
  const DecodeData& data_;
  Rotation rope_;
  std::span<float> out_;
  std::vector<float> lse_;
  std::vector<KvCache> caches_;
  std::optional<Decoding> decoding_;
};

}  // namespace

// Integers have a float32 scale: keys for each column of a page, values for each row.
int64_t DecodeSizes::key_bytes() const {
  const int64_t columns = layers * key_heads * head_dim;
  return int8 ? columns * (keys + 4 * keys / KvCacheShape().page_rows)
              : columns * keys * element_size(dtype);
}
int64_t DecodeSizes::value_bytes() const {
  const int64_t rows = layers * key_heads * keys;
  return int8 ? rows * (head_dim + 4) : rows * head_dim * element_size(dtype);
}

DecodeData::DecodeData(const DecodeSizes& s)
    : sizes(s), q(static_cast<size_t>(s.heads * s.head_dim)) {
  for (size_t n = 0; n < q.size(); ++n) q[n] = value(static_cast<int64_t>(3 * n + 1));
  for (auto* bytes : {&k, &v}) {
    bytes->resize(
        static_cast<size_t>(s.layers * s.key_heads * s.keys * s.head_dim * element_size(s.dtype)));
    fill(s.dtype, *bytes);
  }
}

View<const float> DecodeData::query() const {
  return contiguous(q, {1, sizes.heads, 1, sizes.head_dim});
}

AnyView<const float> DecodeData::view(std::span<const std::byte> all, int64_t layer) const {
  const std::byte* at = all.data() + static_cast<int64_t>(all.size()) / sizes.layers * layer;
  const auto of_type = [&]<class Number>(const Number* data) -> AnyView<const float> {
    return contiguous(data, {1, sizes.key_heads, sizes.keys, sizes.head_dim});
  };
  if (sizes.dtype == DType::kBfloat16) return of_type(reinterpret_cast<const Bfloat16*>(at));
  if (sizes.dtype == DType::kFloat16) return of_type(reinterpret_cast<const Float16*>(at));
  return of_type(reinterpret_cast<const float*>(at));
}

std::function<void()> sextant_call(const DecodeData& data, Positions positions,
                                   const Executor& executor, std::span<float> out) {
  return [step = std::make_shared<Step>(data, positions, executor, out)] { step->run(); };
}

}  // namespace sextant::bench
