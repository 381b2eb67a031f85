// The pages of a cache by number: which are free, and how many sequences use each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sextant {

class PagePool {
 public:
  int64_t size() const { return static_cast<int64_t>(users_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t in_use() const { return size() - free(); }
  bool is_shared(int64_t page) const { return users_[static_cast<size_t>(page)] > 1; }

  // Adds free pages; the lowest is taken first.
  void add(int64_t count) {
    const int64_t pages = size() + count;
    const int64_t before = size();
    free_.reserve(static_cast<size_t>(pages));  // for release()
    users_.resize(static_cast<size_t>(pages), 0);
    for (int64_t page = pages; page-- > before;) free_.push_back(page);
  }
  // Takes a free page, which there must be, for one sequence.
  int64_t take() {
    const int64_t page = free_.back();
    free_.pop_back();
    users_[static_cast<size_t>(page)] = 1;
    return page;
  }
  void share(int64_t page) { ++users_[static_cast<size_t>(page)]; }
  void release(int64_t page) {
    if (--users_[static_cast<size_t>(page)] == 0) free_.push_back(page);
  }

 private:
  std::vector<int64_t> users_;  // how many sequences use each page
  std::vector<int64_t> free_;
};

}  // namespace sextant
