// Decoding in kept memory gives the bits of a plan for each step, and does not allocate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/cache/decoding.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/buckets.h"
#include "sextant/position/slopes.h"
#include "tests/attention/host_backends.h"
#include "tests/attention/tensor.h"
#include "tests/base/allocations.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

constexpr int64_t kMostRows = 700, kLayers = 2;

// Tables and rotation of one encoding, over the diagonals of kMostRows rows or of a window.
struct Encoding {
  std::string name;
  const Rotation* rotation = nullptr;
  const Rotation* of_others = nullptr;  // of all sequences but the first; null: the same
  bool rotated_keys = false;
  Tensor<float> bias;
  std::vector<int32_t> row_at;
  int64_t window = 0;

  RowMaps maps() const { return {.bias = row_at}; }
  int64_t diagonals() const { return window == 0 ? kMostRows : window; }
};

Encoding alibi(int64_t window = 0) {
  Encoding encoding = {.name = "alibi", .window = window};
  const int64_t most = encoding.diagonals();
  encoding.bias = Tensor<float>(1, 2 * kHeads, most, 1);
  const std::vector<double> slopes = alibi_slopes(2 * kHeads);
  for (int64_t h = 0; h < 2 * kHeads; ++h)
    for (int64_t n = 0; n < most; ++n)
      encoding.bias(0, h, n, 0) =
          static_cast<float>(-slopes[static_cast<size_t>(h)] * static_cast<double>(most - 1 - n));
  return encoding;
}

Encoding t5(int64_t window = 0) {
  const T5Buckets buckets({.bidirectional = false});
  Encoding encoding = {
      .name = "t5", .bias = random(1, 2 * kHeads, buckets.buckets(), 1, 3), .window = window};
  const int64_t most = encoding.diagonals();
  for (int64_t n = 0; n < most; ++n)
    encoding.row_at.push_back(static_cast<int32_t>(buckets.bucket(most - 1 - n)));
  return encoding;
}

const Rotation& plain_rope() {
  static const Rotation rotation = rope();
  return rotation;
}

const Rotation& stretched_rope() {
  static const Rotation rotation = rope(4);
  return rotation;
}

std::vector<Encoding> encodings() {
  std::vector<Encoding> all = {
      {.name = "none"},
      {.name = "two ropes", .rotation = &plain_rope(), .of_others = &stretched_rope()}};
  for (const int64_t window : {0, 1, 100, 260})
    for (Encoding& encoding :
         std::vector<Encoding>{{.name = "rope", .rotation = &plain_rope(), .window = window},
                               {.name = "rope, rotated keys",
                               .rotation = &plain_rope(),
                               .rotated_keys = true,
                               .window = window},
                               alibi(window),
                               t5(window)})
      all.push_back(std::move(encoding));
  return all;
}

KvCacheShape shape_of(DType dtype, bool int8 = false) {
  KvCacheShape shape = kShape;
  shape.dtype = dtype;
  shape.int8 = int8;
  return shape;
}

// The types of a cache that can store keys as the encoding needs them.
std::vector<KvCacheShape> shapes_for(const Encoding& encoding) {
  std::vector<KvCacheShape> shapes = {shape_of(DType::kFloat32), shape_of(DType::kBfloat16),
                                      shape_of(DType::kFloat16)};
  if (!encoding.rotated_keys) shapes.push_back(shape_of(DType::kBfloat16, /*int8=*/true));
  return shapes;
}

// Some layers and sequences of unequal length, which grow by a row at each step.
class Model {
 public:
  Model(const Encoding& encoding, const KvCacheShape& shape, const std::vector<int64_t>& lengths)
      : encoding_(encoding), rows_(kMostRows, 5) {
    const auto batch = static_cast<int64_t>(lengths.size());
    q_ = random(batch, 2 * kHeads, 1, kColumns, 7);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      KvCache& cache = caches_.emplace_back(shape);
      for (size_t b = 0; b < lengths.size(); ++b) {
        const int64_t sequence =
            cache.add(static_cast<int64_t>(b) * 100,
                      encoding.rotated_keys ? std::optional(*encoding.rotation) : std::nullopt);
        cache.append(sequence, part(rows_.k, 0, lengths[b]), part(rows_.v, 0, lengths[b]));
        cache.reserve(sequence, kMostRows);
      }
    }
    for (size_t b = 0; b < lengths.size(); ++b)
      entries_.push_back({static_cast<int64_t>(b),
                          b > 0 && encoding.of_others ? encoding.of_others : encoding.rotation,
                          encoding.window});
    for (Tensor<float>* out : {&out_, &expected_})
      *out = Tensor<float>(batch, 2 * kHeads, 1, kValueColumns);
    for (Tensor<float>* lse : {&lse_, &expected_lse_})
      *lse = Tensor<float>(batch, 2 * kHeads, 1, 1);
  }

  void append() {
    for (KvCache& cache : caches_)
      for (const CachedBatch::Entry& entry : entries_) {
        const int64_t row = cache.rows(entry.sequence);
        cache.append(entry.sequence, part(rows_.k, row, row + 1), part(rows_.v, row, row + 1));
      }
  }

  Decoding decoding(const Backend& backend, const Context& context = {}) const {
    return Decoding(caches_[0], entries_, {.heads = 2 * kHeads, .most_rows = kMostRows},
                    encoding_.maps(), backend, context);
  }

  Operands<float> operands() const {
    Operands<float> operands = {.q = q_.view(), .scale = 0.3};
    if (!encoding_.bias.data.empty()) operands.bias = encoding_.bias.view();
    return operands;
  }

  void step(Decoding& decoding) {
    decoding.step(caches_[0]);
    for (const KvCache& cache : caches_)
      decoding.attend(cache, operands(), {out_.view(), lse_.view()});
  }

  // The same by a plan that is made for this call, in the last layer.
  void expect_bits_of_a_new_plan(const Backend& backend) {
    const CachedBatch batch(caches_.back(), entries_, 1);
    Score<float> score = {operands()};
    batch.place(score);
    score.diagonals = {.farthest = encoding_.diagonals() - 1, .count = encoding_.diagonals()};
    score.row_at = encoding_.maps();
    attend<float>(score, {expected_.view(), expected_lse_.view()}, backend);
    ASSERT_EQ(out_.data, expected_.data) << encoding_.name;
    ASSERT_EQ(lse_.data, expected_lse_.data) << encoding_.name;
  }

  std::vector<KvCache>& caches() { return caches_; }

 private:
  const Encoding& encoding_;
  Rows rows_;
  std::vector<KvCache> caches_;
  std::vector<CachedBatch::Entry> entries_;
  Tensor<float> q_, out_, lse_, expected_, expected_lse_;
};

// Pages of 16 rows: a sequence gets a new page at every sixteenth step.
TEST(Decoding, AllocatesNothingAfterTheFirstStep) {
  for (const Encoding& encoding : encodings())
    for (const KvCacheShape& shape : shapes_for(encoding))
      for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{5}, {300, 1, 33, 256}}) {
        SCOPED_TRACE(encoding.name + ", window " + std::to_string(encoding.window));
        Model model(encoding, shape, lengths);
        Decoding decoding = model.decoding(cpu_backend());
        model.append();
        model.step(decoding);
        const int64_t before = allocations();
        for (int n = 0; n < 70; ++n) {
          model.append();
          model.step(decoding);
        }
        EXPECT_EQ(allocations() - before, 0);
      }
}

// A window that moves by units, on a pool, whose results are cut and merged.
TEST(Decoding, AllocatesNothingWhileAWindowMoves) {
  const Encoding encoding = {.name = "rope", .rotation = &plain_rope(), .window = 200};
  const auto pool = make_thread_pool(2);
  for (const bool threads : {false, true}) {
    Model model(encoding, shape_of(DType::kFloat32), {1, 300, 20});
    Decoding decoding = model.decoding(cpu_backend(), threads ? Context(*pool) : Context());
    model.append();
    model.step(decoding);
    const int64_t before = allocations();
    for (int n = 0; n < 390; ++n) {
      model.append();
      model.step(decoding);
    }
    EXPECT_EQ(allocations() - before, 0);
  }
}

TEST(Decoding, AllocatesNothingOnceCountsAreKnown) {
  KvCache cache(kShape);
  std::vector<CachedBatch::Entry> entries;
  for (int64_t b = 0; b < 2; ++b)
    entries.push_back({filled(cache, Rows(300, 1)), &plain_rope(), /*window=*/64 * b});
  Decoding decoding(cache, entries, {.heads = kHeads, .queries = 12, .most_rows = 400});
  const Tensor<float> q = random(2, kHeads, 12, kColumns, 1);
  Tensor<float> out(2, kHeads, 12, kValueColumns), lse(2, kHeads, 12, 1);
  const std::vector<std::vector<int64_t>> all_counts = {{}, {1, 12}, {0, 1}, {0, 0}, {12, 0}};
  const auto steps = [&] {
    for (const std::vector<int64_t>& counts : all_counts) {
      decoding.step(cache, counts);
      decoding.attend(cache, {.q = q.view()}, {out.view(), lse.view()});
    }
  };
  steps();
  const int64_t before = allocations();
  steps();
  EXPECT_EQ(allocations() - before, 0);
}

TEST(Decoding, HasTheBitsOfAPlanForEachStep) {
  const auto pool = make_thread_pool(3);
  for (const Backend* backend : host_backends())
    for (const Encoding& encoding : encodings())
      for (const KvCacheShape& shape : shapes_for(encoding))
        for (const bool threads : {false, true}) {
          if (shape.dtype != DType::kBfloat16) continue;
          SCOPED_TRACE(std::string(backend->name) + ", " + encoding.name);
          Model model(encoding, shape, {300, 1, 33});
          Decoding decoding = model.decoding(*backend, threads ? Context(*pool) : Context());
          for (int n = 0; n < 20; ++n) {
            model.append();
            model.step(decoding);
            model.expect_bits_of_a_new_plan(*backend);
          }
        }
}

// Sequences may also shrink and be moved between steps.
TEST(Decoding, FollowsSequencesThatChange) {
  const Encoding encoding = {.name = "rope", .rotation = &plain_rope()};
  for (const bool int8 : {false, true}) {
    Model model(encoding, shape_of(DType::kFloat32, int8), {300, 40});
    Decoding decoding = model.decoding(cpu_backend());
    const std::vector<std::function<void(KvCache&)>> changes = {
        [](KvCache& cache) { cache.truncate(0, 20); },
        [](KvCache& cache) { cache.rerotate(1, 1000); },
        [](KvCache& cache) { cache.drop(1, 3, 8); },
        [](KvCache& cache) { cache.reserve(0, kMostRows); }};
    for (const auto& change : changes) {
      for (KvCache& cache : model.caches()) change(cache);
      model.append();
      model.step(decoding);
      model.expect_bits_of_a_new_plan(cpu_backend());
    }
  }
}

void expect_refused(const std::function<void()>& call, const std::string& reason) {
  EXPECT_THAT(call, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(reason)));
}

TEST(Reserve, AppendingAllocatesNothingAfterAFork) {
  for (const bool int8 : {false, true})
    for (const int64_t rows : {20, 10, 16}) {  // a last page that is not full, is cut, is full
      KvCache cache(shape_of(DType::kFloat32, int8));
      const int64_t sequence = filled(cache, Rows(20, 1));
      cache.reserve(sequence, 100);
      const int64_t fork = cache.fork(sequence, rows);
      cache.reserve(fork, 50);
      const Rows one(1, 2);
      const int64_t before = allocations();
      while (cache.rows(sequence) < 100) cache.append(sequence, one.k.view(), one.v.view());
      while (cache.rows(fork) < 50) cache.append(fork, one.k.view(), one.v.view());
      EXPECT_EQ(allocations() - before, 0);
    }
}

// As speculative decoding does: rows are taken back and written again.
TEST(Reserve, AppendingAllocatesNothingAfterTruncation) {
  for (const bool int8 : {false, true})
    for (const bool shared : {false, true}) {
      KvCache cache(shape_of(DType::kFloat32, int8));
      const int64_t sequence = filled(cache, Rows(32, 1));
      cache.reserve(sequence, 64);
      if (shared) cache.fork(sequence, 32);
      const Rows one(1, 2);
      const int64_t before = allocations();
      cache.truncate(sequence, 24);
      while (cache.rows(sequence) < 64) cache.append(sequence, one.k.view(), one.v.view());
      EXPECT_EQ(allocations() - before, 0);
    }
}

TEST(Reserve, ARefusedCallChangesNothing) {
  KvCache cache(kShape);
  const int64_t a = filled(cache, Rows(20, 1)), b = filled(cache, Rows(20, 1));
  EXPECT_THROW(cache.reserve(a, int64_t{1} << 52), std::exception);
  cache.reserve(b, 100);  // would fail if the pages of `a` counted
  const Rows one(1, 2);
  const int64_t before = allocations();
  while (cache.rows(b) < 100) cache.append(b, one.k.view(), one.v.view());
  EXPECT_EQ(allocations() - before, 0);
}

TEST(Decoding, RefusesWhatDoesNotFit) {
  KvCache cache(kShape);
  const int64_t sequence = filled(cache, Rows(20, 1));
  const auto make = [&](const DecodingShape& shape, const RowMaps& maps = {}) {
    Decoding(cache, {{sequence, nullptr}}, shape, maps);
  };
  expect_refused([&] { make({.heads = 3, .most_rows = 30}); },
                 "decoding: heads: expected a multiple of the 2 key heads, but got 3");
  expect_refused([&] { make({.heads = 2, .queries = 0, .most_rows = 30}); }, "decoding: queries");
  expect_refused([&] { make({.heads = 2, .queries = 2, .most_rows = 1}); }, "decoding: most_rows");
  const std::vector<int32_t> short_map(10, 0);
  expect_refused([&] { make({.heads = 2, .most_rows = 30}, {.bias = short_map}); },
                 "row_at.bias: expected 30, one for each diagonal, but got 10");

  Decoding decoding(cache, {{sequence, nullptr}}, {.heads = 2, .most_rows = 20});
  const Tensor<float> q = random(1, 2, 1, kColumns, 1), bias(1, 1, 7, 1);
  Tensor<float> out(1, 2, 1, kValueColumns), lse(1, 2, 1, 1);
  const auto attend = [&](const View<const float>& table) {
    decoding.attend(cache, {.q = q.view(), .bias = table}, {out.view(), lse.view()});
  };
  expect_refused([&] { attend({}); }, "expected a step() that succeeds before it");
  decoding.step(cache);
  attend({});
  expect_refused([&] { attend(bias.view()); }, "decoding: bias.rows: expected 20");
  const Rows one(1, 2);
  cache.append(sequence, one.k.view(), one.v.view());
  expect_refused([&] { attend({}); }, "sequence 0: rows: expected 20, but got 21");
  expect_refused([&] { decoding.step(cache); },
                 "decoding: sequence 0: rows: expected at most 20 (most_rows), but got 21");
  expect_refused([&] { attend({}); }, "expected a step() that succeeds before it");
  cache.truncate(sequence, 20);
  decoding.step(cache);
  attend({});
}

}  // namespace
}  // namespace sextant::testing
