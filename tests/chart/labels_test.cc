#include "sextant/chart/line_layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace sextant::chart {
namespace {

std::vector<double> wishes() {
  return *rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(-500, 1500), [](int v) { return v / 2.0; }));
}

double cost(const std::vector<double>& wanted, const std::vector<double>& placed) {
  double sum = 0;
  for (size_t i = 0; i < wanted.size(); ++i) sum += std::pow(wanted[i] - placed[i], 2);
  return sum;
}

RC_GTEST_PROP(SpreadOut, KeepsLabelsApartInOrderAndInside, ()) {
  const std::vector<double> wanted = wishes();
  const double high = *rc::gen::inRange(50, 1000);
  const std::vector<double> placed = spread_out(wanted, 15, 10, high);
  RC_ASSERT(placed.size() == wanted.size());
  const double fits = wanted.size() < 2 ? 15 : (high - 10) / static_cast<double>(wanted.size() - 1);
  const double spacing = std::min(15.0, fits);
  for (size_t i = 0; i < wanted.size(); ++i) {
    RC_ASSERT(placed[i] >= 10 - 1e-6);
    RC_ASSERT(placed[i] <= high + 1e-6);
    for (size_t k = 0; k < i; ++k) {
      RC_ASSERT(std::abs(placed[i] - placed[k]) >= spacing - 1e-6);
      if (wanted[i] > wanted[k]) RC_ASSERT(placed[i] > placed[k] - 1e-6);
    }
  }
}

// No small change of the placement that keeps the spacing brings labels nearer to their wanted
// places.
RC_GTEST_PROP(SpreadOut, NoLabelCouldStandNearerToItsWish, ()) {
  const std::vector<double> wanted = wishes();
  const std::vector<double> placed = spread_out(wanted, 15, 0, 1e4);
  std::vector<double> sorted = placed;
  std::sort(sorted.begin(), sorted.end());
  for (size_t first = 0; first < sorted.size(); ++first) {
    for (size_t last = first; last < sorted.size(); ++last) {
      for (const double step : {-0.01, 0.01}) {
        std::vector<double> moved = placed;
        for (double& place : moved) {
          if (place >= sorted[first] && place <= sorted[last]) place += step;
        }
        std::vector<double> check = moved;
        std::sort(check.begin(), check.end());
        bool allowed = check.front() >= 0;
        for (size_t i = 1; i < check.size(); ++i)
          allowed = allowed && check[i] - check[i - 1] >= 15;
        if (allowed) RC_ASSERT(cost(wanted, moved) >= cost(wanted, placed) - 1e-6);
      }
    }
  }
}

TEST(SpreadOut, LeavesLabelsThatHaveRoomWhereTheyAre) {
  const std::vector<double> wanted = {100, 20, 60};
  EXPECT_EQ(spread_out(wanted, 15, 0, 200), wanted);
}

TEST(SpreadOut, EqualWishesKeepTheOrderOfTheList) {
  EXPECT_EQ(spread_out(std::vector<double>{50, 50, 50}, 10, 0, 100),
            (std::vector<double>{40, 50, 60}));
}

}  // namespace
}  // namespace sextant::chart
