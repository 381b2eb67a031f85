// Keys and values in pages, for tests that compare them with contiguous ones.
#pragma once

#include <gtest/gtest.h>

#include "sextant/attention/attend.h"
#include "tests/attention/paged_keys.h"
#include "tests/attention/random_score.h"

namespace sextant {

// Fails the test unless pages give the bits of contiguous keys and values.
template <class T>
void expect_same_in_pages(const RandomOptions& options, int64_t page_rows, const Backend& backend,
                          const Executor& executor = serial_executor()) {
  SCOPED_TRACE(to_string(options) + " pages of " + std::to_string(page_rows));
  RandomScore<T> random(options);
  random.score.scale = 0.2;
  const Attended<T> whole = random.new_attended(), paged = random.new_attended();
  attend(random.score, whole, backend, executor);
  attend(Paged<T>(random.score, page_rows, options.seed).score, paged, backend, executor);
  const HostAnyView out(whole.out), paged_out(paged.out);
  const HostView lse(whole.lse), paged_lse(paged.lse);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < out.rows; ++i) {
        EXPECT_EQ(lse(b, h, i, 0), paged_lse(b, h, i, 0));
        for (int64_t c = 0; c < out.columns; ++c) EXPECT_EQ(out(b, h, i, c), paged_out(b, h, i, c));
      }
}

}  // namespace sextant
