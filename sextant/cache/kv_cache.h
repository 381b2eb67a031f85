// A paged KV cache for one layer: keys and values of growing sequences.
//
//   sequence 0   rows 0 .. 599   pages  4 1 7
//   sequence 1   rows 0 .. 299   pages  4 2     forked from sequence 0 at row 256: page 4 is shared
//
//   a page: [key heads, page_rows, columns] of k, and of v
//
// All pages have one size, and a page may belong to any number of sequences. A shared page is
// copied before one of its sequences writes to it, so a fork needs no memory until it differs. With
// page_rows as long as the longest sequence the cache is contiguous. Attention reads the pages in
// place (Pages in plan.h).
//
// Row n of a sequence has position first_position + n. Keys are stored unrotated, and kernels
// rotate them when they read them: any spectrum is then exact, also one that is stretched
// differently for each sequence or anew at each step, which is not so in engines that cache rotated
// keys. With `rotated_keys` keys are rotated once, at their position, which saves this work where a
// sequence's spectrum never changes. Moving rotated keys rotates them by the difference of
// positions: the angle is exact, and each move rounds to the cache's format again. A key must fit
// before and after its rotation.
//
// Keys and values are stored in float32, or rounded to bfloat16 or float16, which halves the memory
// and the traffic of a decoding step. A finite key or value that this type would round to infinity
// (from 65520 on in float16) is an Error that names its head, row and column, and nothing is
// written.
//
// With `int8`, pages become 8-bit integers as soon as they are full: about a quarter of float32's
// memory. Keys have a scale for each page, head and column, values for each row and head. The last
// page of a sequence has the type until it is full. Rows of integers that are moved or written
// again (drop(), append() after truncate() or fork()) are rounded once more; those of a page in
// which drop() begins, at each drop. Whole pages are dropped exactly. Infinite numbers, NaN and
// rotated keys are an Error in such a cache.
//
// With a PageStore a cache has no memory of its own: it only knows which rows are where, for code
// that copies them, such as that of a GPU.
//
// Not thread-safe. Views and tables are valid until the next non-const call. Errors name the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sextant/attention/score.h"
#include "sextant/base/export.h"
#include "sextant/cache/page_store.h"

namespace sextant {

namespace stored_rows {
struct Rerotation;  // internal
}

struct KvCacheShape {
  int64_t key_heads = 1, key_columns = 0, value_columns = 0;
  int64_t page_rows = 256;  // a multiple of kPageUnit; the cpu backend reads 256 without a copy
  DType dtype = DType::kFloat32;  // of keys and values; not kFloat64
  bool int8 = false;              // whether full pages become integers

  friend bool operator==(const KvCacheShape&, const KvCacheShape&) = default;
};

class SEXTANT_API KvCache {
 public:
  // Throws Error for sizes below 1 (value_columns may be 0), or if page_rows is not a multiple of
  // kPageUnit.
  explicit KvCache(const KvCacheShape& shape);
  // A cache whose keys and values are in `store`, which must outlive it. Rows are added by grow(),
  // as functions that read, write or rotate rows are an Error, and so are int8, rotated keys and a
  // copy of the cache.
  KvCache(const KvCacheShape& shape, PageStore& store);
  KvCache(const KvCache& other);
  KvCache(KvCache&& other) noexcept;
  KvCache& operator=(KvCache other) noexcept;
  ~KvCache();

  const KvCacheShape& shape() const { return shape_; }
  const PageStore* store() const;  // null: the cache has memory of its own
  int64_t pages_in_use() const;

  // Adds an empty sequence and returns its id, which is never reused. With `rotated_keys`, keys are
  // rotated when they are stored. Throws Error if the rotation has growth (XPOS) or axes other than
  // 0.
  int64_t add(int64_t first_position = 0, std::optional<Rotation> rotated_keys = {});
  // Adds a sequence that shares the first `rows` rows of another one, and returns its id.
  int64_t fork(int64_t sequence, int64_t rows);
  void remove(int64_t sequence);
  // Sets or removes the rotation by which the keys of a sequence without rows will be stored.
  void set_rotated_keys(int64_t sequence, std::optional<Rotation> rotated_keys);
  // Takes memory for the pages with which the sequence has `rows` rows in all, a copy of a shared
  // last page included: until then append() allocates nothing, also after fork(). Sequences that
  // outgrow their own reservation take from these pages, too.
  void reserve(int64_t sequence, int64_t rows);

  bool holds(int64_t sequence) const { return sequences_.contains(sequence); }
  int64_t rows(int64_t sequence) const { return at(sequence).rows; }
  int64_t first_position(int64_t sequence) const { return at(sequence).first_position; }
  const std::optional<Rotation>& rotated_keys(int64_t sequence) const {
    return at(sequence).rotated_keys;
  }

  // Appends the rows of batch entry `b` of k and v, [batch, key heads, rows, columns]. Keys are
  // unrotated.
  void append(int64_t sequence, const AnyView<const float>& k, const AnyView<const float>& v,
              int64_t b = 0);
  // Throws the Error that append() would throw for these rows as they are given.
  void check_appended(const AnyView<const float>& k, const AnyView<const float>& v,
                      int64_t b = 0) const;
  // As append(), for keys in the form in which they are stored, as read() returns them.
  void append_stored(int64_t sequence, const AnyView<const float>& k, const AnyView<const float>& v,
                     int64_t b = 0);
  // Appends a page of integers, [1, key heads, page_rows, columns] with scales as the cache has
  // them (int8_key_pages()), to a sequence all of whose pages are full.
  void append_int8(int64_t sequence, const Int8Pages<float>& k, const Int8Pages<float>& v);
  // With a PageStore: takes pages for `rows` more rows. If it throws, the cache is unchanged.
  void grow(int64_t sequence, int64_t rows);
  // The page and the row in it that hold a row of a sequence.
  StoredRow stored(int64_t sequence, int64_t row) const { return stored(at(sequence), row); }
  // The sequence gets the rows of another one, which is removed. Both must have the same rotation.
  void take(int64_t sequence, int64_t other);
  // Keeps the first `rows` rows.
  void truncate(int64_t sequence, int64_t rows);
  // Removes rows [first, first + count). Later rows move up to the positions that become free: the
  // eviction of StreamingLLM, the context shift of llama.cpp.
  void drop(int64_t sequence, int64_t first, int64_t count);
  // Moves the sequence to other positions, or rotates its keys by another rotation of the same
  // pairs instead. Unrotated keys need no work for a move; a rotation for them throws Error.
  void rerotate(int64_t sequence, int64_t first_position);
  void rerotate(int64_t sequence, const Rotation& rotation);

  // Copies rows [first, first + k.rows) into batch entry 0 of k and v, with keys in the form in
  // which they are stored.
  void read(int64_t sequence, int64_t first, const AnyView<float>& k,
            const AnyView<float>& v) const;

  // All pages, [pages, key heads, page_rows, columns], without data if they are in a PageStore;
  // those of integers, and the pages of a sequence in order (Pages in plan.h; below 0: integers).
  AnyView<const float> key_pages() const;
  AnyView<const float> value_pages() const;
  Int8Pages<float> int8_key_pages() const;
  Int8Pages<float> int8_value_pages() const;
  std::span<const int64_t> pages(int64_t sequence) const { return at(sequence).pages; }

 private:
  struct Sequence {
    int64_t rows = 0, first_position = 0;
    int64_t reserved_rows = 0;  // rows in all, for whose pages free ones are kept
    std::vector<int64_t> pages;
    std::optional<Rotation> rotated_keys;
  };

  const Sequence& at(int64_t sequence) const;
  Sequence& at(int64_t sequence) {
    return const_cast<Sequence&>(std::as_const(*this).at(sequence));
  }
  // The pages that a sequence lacks for `rows` rows in all, a copy of a shared last one included.
  struct PageCounts {
    int64_t numbers = 0, int8 = 0;
  };
  PageCounts missing_pages(const Sequence& sequence, int64_t rows) const;
  void need_free_pages(const PageCounts& counts);
  void add_pages(int64_t count);
  int64_t new_page();
  void share(int64_t page);
  void release(int64_t page);
  // Copies the page if it is shared or integers, so that its rows can be written.
  void own_page(Sequence& sequence, int64_t n);
  void close_page(Sequence& sequence, int64_t n);  // rounds it to integers
  void drop_int8(int64_t sequence, int64_t first, int64_t count);
  StoredRow stored(const Sequence& sequence, int64_t row) const;
  AnyView<float> keys();
  AnyView<float> values();
  AnyView<float> pages_of(std::byte* data, int64_t columns) const;
  void expect_own_memory(const char* call) const;
  void need_pages(Sequence& sequence, int64_t rows);
  void add_rows(Sequence& sequence, const AnyView<const float>& k, const AnyView<const float>& v,
                int64_t b);
  auto reader(const Sequence& sequence, int64_t first) const;
  template <class Read>
  void check_rotated(const char* name, const stored_rows::Rerotation& rotation, Read read) const;
  template <class Read>
  void write_rotated(const Sequence& sequence, int64_t first,
                     const stored_rows::Rerotation& rotation, Read read);
  void rotate_rows(Sequence& sequence, const stored_rows::Rerotation& rotation);

  KvCacheShape shape_;
  struct Memory;  // internal
  std::unique_ptr<Memory> memory_;
  std::map<int64_t, Sequence> sequences_;
  int64_t next_sequence_ = 0;
};

// The frame of a sequence of `rows` rows and its last `queries` ones, from row 0 of q and k on.
SEXTANT_API Frame cached_frame(const KvCache& cache, int64_t sequence, int64_t rows,
                               int64_t queries);

// While it lives, what these sequences get is provisional: unless keep() was called, its destructor
// removes the rows that they did not have before, and the rotation of keys that an empty sequence
// did not have. A sequence must not lose rows or be removed meanwhile.
class SEXTANT_API ProvisionalRows {
 public:
  ProvisionalRows(KvCache& cache, std::span<const int64_t> sequences);
  ProvisionalRows(const ProvisionalRows&) = delete;
  ~ProvisionalRows();
  void keep() { before_.clear(); }

 private:
  struct Before {
    int64_t sequence, rows;
    bool rotated_keys;
  };
  KvCache& cache_;
  std::vector<Before> before_;
};

// Whether both have the same pairs, frequencies and gain.
SEXTANT_API bool same_rotation(const Rotation& a, const Rotation& b);

// Cached sequences as a batch: the operands of a score that say where keys are stored, and which
// keys the last rows of each sequence see. It must live as long as the score, and the cache must
// not change meanwhile.
class SEXTANT_API CachedBatch {
 public:
  // The rotation of a sequence's queries and keys; null: none. Rotated keys are not rotated again.
  // A query sees `window` keys, its own and those before it; 0: all. Sequences of one batch may
  // have different rotations and windows.
  struct Entry {
    int64_t sequence = 0;
    const Rotation* rotation = nullptr;
    int64_t window = 0;
  };

  // The queries of entry b are the last counts[b] rows of its sequence, and the first counts[b]
  // rows of q, which has `queries`: other rows see no key. No counts: `queries` for each. Throws
  // Error if a sequence has fewer rows, or has rotated keys of another rotation.
  CachedBatch(const KvCache& cache, std::span<const Entry> entries, int64_t queries,
              std::span<const int64_t> counts = {})
      : CachedBatch(cache, entries, queries, counts, std::nullopt) {}
  CachedBatch(const CachedBatch&) = delete;

  // Takes the rows that the sequences have now, in the memory of those before. Throws Error as the
  // constructor does; the batch then serves no call.
  void renew(const KvCache& cache, std::span<const int64_t> counts = {}) {
    set(cache, counts, std::nullopt);
  }

  // Frames, sweeps (causal), diagonals (all distances that are seen) and pages. A frame begins at
  // the last multiple of kFrameUnit from which on its queries see keys: what is prepared follows
  // the window. The same plan serves the caches of other layers, if they were filled by the same
  // calls.
  const Plan& plan() const { return plan_; }
  // Sets k and v to the pages of `cache`, the batch's own or one that was filled by the same calls.
  // Throws Error that names a sequence whose pages, rows, first position or rotation of stored keys
  // are not the batch's.
  void set_keys(Operands<float>& operands, const KvCache& cache) const;

  // Sets k, v and the plan of a score.
  void place(Score<float>& score) const;

 private:
  // A sequence of the batch, and the rotation by which its keys are stored, or null.
  struct Member {
    int64_t sequence;
    const Rotation* rotated_keys;
  };
  // The rotations that some sequences share; the key ranges of the others are empty.
  struct RotationGroup {
    const Rotation *query, *key;
    std::vector<KeyRange> key_ranges;  // [entries, queries]
  };

  friend class Decoding;

  // With `rows`, a batch that needs at least the memory of any whose sequences have up to so many.
  // Pages that do not exist yet are 0.
  CachedBatch(const KvCache& cache, std::span<const Entry> entries, int64_t queries,
              std::span<const int64_t> counts, std::optional<int64_t> rows);
  void set(const KvCache& cache, std::span<const int64_t> counts, std::optional<int64_t> rows);
  void set_counts(std::span<const int64_t> counts);
  void add_frame(const KvCache& cache, int64_t b, int64_t rows, bool whole);
  size_t group_of(const KvCache& cache, const Entry& entry);
  void add_ranges(size_t own, int64_t b, bool whole);
  void add_sweeps();

  AnyView<const float> k_, v_;
  Int8Pages<float> k_int8_, v_int8_;
  int64_t page_rows_ = 0, rows_ = 0, pages_per_sequence_ = 0, queries_ = 0;
  std::vector<int64_t> table_;
  std::vector<Entry> entries_;
  std::vector<int64_t> counts_;  // [entries]
  std::vector<Member> members_;  // [entries]
  std::vector<RotationGroup> groups_;
  Plan plan_;
};

}  // namespace sextant
