// The memory of a cache's pages where KvCache does not hold it, such as that of a GPU. The cache
// knows which rows are where, and the owner of the memory copies rows.
#pragma once

#include <cstdint>

namespace sextant {

class PageStore {
 public:
  virtual ~PageStore() = default;
  // Takes memory for `pages` pages in all and keeps the contents of those before. If it throws,
  // nothing is changed.
  virtual void resize(int64_t pages) = 0;
  // Copies the keys and values of one page to another.
  virtual void copy_page(int64_t from, int64_t to) = 0;
};

}  // namespace sextant
