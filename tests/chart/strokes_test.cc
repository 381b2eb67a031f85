#include "sextant/chart/line_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>

namespace sextant::chart {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Strokes, BreakAtGaps) {
  const double gap = std::nan("");
  const std::vector<double> y = {gap, 1, 2, gap, gap, 3};
  EXPECT_THAT(strokes(y, [](size_t i) { return static_cast<long>(i); }),
              ElementsAre(ElementsAre(1, 2), ElementsAre(5)));
  EXPECT_THAT(strokes(std::vector<double>{gap}, [](size_t) { return 0L; }), IsEmpty());
}

// A column of pixels shows the range of its values, which thinning must not change.
RC_GTEST_PROP(Strokes, KeepTheSpanOfEachColumnAndItsEnds, ()) {
  const auto y = *rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(-50, 50), [](int v) { return double(v); }));
  const auto width = static_cast<size_t>(*rc::gen::inRange(1, 40));
  const auto column = [&](size_t i) { return static_cast<long>(i / width); };
  const auto found = strokes(y, column);
  RC_ASSERT(found.size() == (y.empty() ? 0U : 1U));
  if (y.empty()) return;
  std::map<long, std::vector<size_t>> all, kept;
  for (size_t i = 0; i < y.size(); ++i) all[column(i)].push_back(i);
  for (const size_t i : found[0]) kept[column(i)].push_back(i);
  RC_ASSERT(all.size() == kept.size());
  const auto below = [&](size_t a, size_t b) { return y[a] < y[b]; };
  for (const auto& [place, some] : kept) {
    const auto& every = all[place];
    RC_ASSERT(some.size() <= 4U);
    RC_ASSERT(some.front() == every.front());
    RC_ASSERT(some.back() == every.back());
    RC_ASSERT(y[*std::min_element(some.begin(), some.end(), below)] ==
              y[*std::min_element(every.begin(), every.end(), below)]);
    RC_ASSERT(y[*std::max_element(some.begin(), some.end(), below)] ==
              y[*std::max_element(every.begin(), every.end(), below)]);
  }
}

}  // namespace
}  // namespace sextant::chart
