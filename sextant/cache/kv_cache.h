// Keys and values of texts that grow, one layer's, in pages.
//
//   text 0   rows 0 .. 599   pages  4 1 7       a page: [key heads, page_rows, columns] of k, and
//   of v text 1   rows 0 .. 299   pages  4 2         forked from text 0 at row 256: page 4 is
//   shared
//
// Pages have one size and belong to any number of texts; a page that several hold is copied before
// one of them writes to it, so a fork costs no memory until it differs. With page_rows as long as
// the longest text the cache is contiguous. Attention reads the pages where they lie (score.h,
// Pages).
//
// Row n of a text stands at position first_position + n. Keys are held as they are, and kernels
// turn them as they read them: any spectrum, stretched otherwise for each text or anew at each
// step, is then exact, which it is not in engines that cache turned keys. With `rotated_by` keys
// are turned once, at their position, which saves that work where a text's spectrum never changes;
// moving them is then a turn by the difference, exact in its angle and rounded to the cache's
// format each time.
//
// Keys and values are held in float32, or rounded to bfloat16 or float16: half the memory, and half
// of what a decoding step reads.
//
// Not thread-safe. Views and tables are valid until the next call that is not const. Errors name
// the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sextant/attention/score.h"
#include "sextant/base/aligned_memory.h"

namespace sextant {

struct KvCacheShape {
  int64_t key_heads = 1, key_columns = 0, value_columns = 0;
  int64_t page_rows =
      256;  // a multiple of kPageUnit; 256 is what the cpu backend reads without a copy
  Format format = Format::kWide;  // of keys and values; kWide: float32

  friend bool operator==(const KvCacheShape&, const KvCacheShape&) = default;
};

class KvCache {
 public:
  // Throws Error for sizes below 1 (value_columns may be 0) or page_rows that are no multiple.
  explicit KvCache(const KvCacheShape& shape);

  const KvCacheShape& shape() const { return shape_; }
  int64_t pages_in_use() const { return static_cast<int64_t>(users_.size() - free_.size()); }

  // A new text without rows; its number is not used again. `rotated_by`: keys are held turned.
  // Growth (XPOS) and axes other than 0 are refused there.
  int64_t add(int64_t first_position = 0, std::optional<Rotation> rotated_by = {});
  // A new text of the first `rows` rows of another.
  int64_t fork(int64_t sequence, int64_t rows);
  void remove(int64_t sequence);

  bool holds(int64_t sequence) const { return sequences_.contains(sequence); }
  int64_t rows(int64_t sequence) const { return at(sequence).rows; }
  int64_t first_position(int64_t sequence) const { return at(sequence).first_position; }
  const std::optional<Rotation>& rotated_by(int64_t sequence) const {
    return at(sequence).rotated_by;
  }

  // Rows of batch entry `b` of k and v, [batch, key heads, rows, columns], plain, behind those
  // there are.
  void append(int64_t sequence, const AnyView<const float>& k, const AnyView<const float>& v,
              int64_t b = 0);
  // The same for keys that are as they are held already: what read() has given.
  void append_held(int64_t sequence, const AnyView<const float>& k, const AnyView<const float>& v,
                   int64_t b = 0);
  // Keeps the first `rows` rows.
  void truncate(int64_t sequence, int64_t rows);
  // Takes out rows [first, first + count); those behind move up, to the positions that become free:
  // the eviction of StreamingLLM, the context shift of llama.cpp.
  void drop(int64_t sequence, int64_t first, int64_t count);
  // Moves the text to other positions, or has its keys turned by another rotation of the same
  // pairs. Keys that are held plain need no work, and a rotation for them is refused.
  void rerotate(int64_t sequence, int64_t first_position);
  void rerotate(int64_t sequence, const Rotation& rotation);

  // Copies rows [first, first + k.rows) into batch entry 0 of k and v, keys as they are held.
  void read(int64_t sequence, int64_t first, const AnyView<float>& k,
            const AnyView<float>& v) const;

  // All pages, [pages, key heads, page_rows, columns], and the pages of a text in order.
  AnyView<const float> key_pages() const;
  AnyView<const float> value_pages() const;
  std::span<const int64_t> pages(int64_t sequence) const { return at(sequence).pages; }

 private:
  struct Sequence {
    int64_t rows = 0, first_position = 0;
    std::vector<int64_t> pages;
    std::optional<Rotation> rotated_by;
  };

  const Sequence& at(int64_t sequence) const;
  Sequence& at(int64_t sequence) {
    return const_cast<Sequence&>(std::as_const(*this).at(sequence));
  }
  int64_t new_page();
  void release(int64_t page);
  void own_page(Sequence& sequence, int64_t n);  // copies it if others hold it too
  StoredRow stored(const Sequence& sequence, int64_t row) const;
  AnyView<float> keys() { return pages_of(keys_.data(), shape_.key_columns); }
  AnyView<float> values() { return pages_of(values_.data(), shape_.value_columns); }
  AnyView<float> pages_of(std::byte* data, int64_t columns) const;
  void rotate_rows(Sequence& sequence, int64_t first, int64_t last, const Rotation* from,
                   int64_t from_position, const Rotation* to, int64_t to_position);

  KvCacheShape shape_;
  std::vector<std::byte, LinesAllocator<std::byte>> keys_, values_;
  std::vector<int64_t> users_;  // how many texts hold a page
  std::vector<int64_t> free_;
  std::map<int64_t, Sequence> sequences_;
  int64_t next_sequence_ = 0;
};

// Cached texts as a batch: the operands of a score that say where keys lie and which of them the
// latest `queries` rows of each text see. Lives as long as the score; the cache must not change
// meanwhile.
class CachedBatch {
 public:
  // How a text's queries and keys are turned; null: not at all. Texts of one batch may differ, and
  // if a text's keys are held turned its keys are left as they are.
  struct Entry {
    int64_t sequence = 0;
    const Rotation* rotation = nullptr;
  };

  // Throws Error if a text has fewer rows than `queries`, or holds keys turned by another rotation.
  CachedBatch(const KvCache& cache, std::span<const Entry> entries, int64_t queries);
  CachedBatch(const CachedBatch&) = delete;

  // Sets k, v, pages, frames, sweeps (causal) and diagonals (every distance there is) of a score.
  void place(Score<float>& score) const;

  // int64 [entries, rows]: positions of keys; of queries.
  std::span<const int64_t> key_positions() const { return key_positions_; }
  std::span<const int64_t> query_positions() const { return query_positions_; }

 private:
  struct GrowingPlan {
    const Rotation *query, *key;
    std::vector<KeyRange> key_ranges;  // [entries, queries]
  };

  void add_frame(const KvCache& cache, int64_t sequence, int64_t b);
  size_t way_of(const KvCache& cache, const Entry& entry);
  void add_runs(size_t own, int64_t b);

  AnyView<const float> k_, v_;
  int64_t rows_ = 0, pages_per_sequence_ = 0, queries_ = 0;
  std::vector<int64_t> table_, key_positions_, query_positions_;
  std::vector<Frame> frames_;
  std::vector<GrowingPlan> plans_;
  std::vector<Sweep> sweeps_;
};

}  // namespace sextant
