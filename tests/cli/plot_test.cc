#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/cli/plotted.h"

namespace sextant::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Plotted, EachMethodDrawsWithItsDefaults) {
  ASSERT_FALSE(plotted_methods().empty());
  for (const PlottedMethod& method : plotted_methods()) {
    const std::vector<Figure> drawn = figures(method.name, {});
    EXPECT_GE(drawn.size(), 2) << method.name << ": a map and a line, at least";
    for (const Figure& figure : drawn) {
      if (std::holds_alternative<NumberTable>(figure.chart)) continue;
      EXPECT_THAT(svg_of(figure), HasSubstr("</svg>")) << method.name << " " << figure.name;
    }
  }
}

TEST(Plotted, ScoresAgainstDistanceAreMeansOfDiagonals) {
  const PlotSubject subject = {"any", "", {.step = 1, .list = {0, 1, 2}}};
  const double kHidden = std::nan("");
  const std::vector<double> scores = {1, 5, kHidden, 2, 3, 7, 4, 6, 8};
  const std::vector<Figure> all = score_figures(subject, scores);
  EXPECT_EQ(map_of(all, "score").values.size(), 9U);
  const chart::Series line = line_of(all).series.at(0);
  EXPECT_THAT(line.x, ElementsAre(-1, 0, 1, 2));
  EXPECT_THAT(line.y, ElementsAre(6, 4, 4, 4));
  EXPECT_THAT(line.low, ElementsAre(5, 1, 2, 4));
}

TEST(Plotted, EachOptionIsReadAndRefusesNonsense) {
  for (const PlottedMethod& method : plotted_methods()) {
    for (const PlotOption& option : method.options) {
      EXPECT_THAT(
          complaint_about([&] {
            figures(method.name, {{option.name, "nonsense"}});
          }),
          AllOf(HasSubstr("--" + option.name), ::testing::ContainsRegex("but got \"?nonsense")))
          << method.name;
    }
  }
}

TEST(Plotted, AnyLengthFromOnePositionOn) {
  for (const PlottedMethod& method : plotted_methods()) {
    for (const char* length : {"1", "2", "3"}) {
      const std::vector<Figure> drawn = figures(method.name, {{"length", length}});
      EXPECT_GE(drawn.size(), 2) << method.name << " " << length;
      for (const Figure& figure : drawn) EXPECT_NO_THROW(svg_of(figure)) << length;
    }
  }
}

TEST(Plotted, FarPositionsAreDrawnWithSteps) {
  const auto all = figures("sinusoidal", {{"length", "1000000"}, {"step", "100000"}});
  const chart::HeatMap rows = map_of(all, "vectors");
  EXPECT_EQ(rows.rows.count, 10);
  EXPECT_EQ(rows.rows.step, 100000);
  EXPECT_NEAR(rows.values[64], std::sin(100000.0), 1e-12);
  EXPECT_THAT(complaint_about([] {
                figures("rope", {{"length", "1000000"}});
              }),
              HasSubstr("at most 2048 positions, but got 1000000; --step 489 would do"));
  figures("alibi", {{"length", "1000000"}, {"step", "489"}});
}

TEST(Sinusoidal, FairseqsRowsBeginAtPositionTwo) {
  const auto rows = [](const char* layout) {
    return map_of(figures("sinusoidal", {{"layout", layout}, {"dim", "8"}}), "vectors").values;
  };
  const auto all = rows("tensor2tensor"), later = rows("fairseq");
  ASSERT_EQ(later.size(), all.size());
  for (size_t n = 0; n + 16 < all.size(); ++n) EXPECT_EQ(later[n], all[n + 16]);
}

TEST(Sinusoidal, ScoresLikeRope) {
  const auto sinusoidal = figures("sinusoidal", {}), rope = figures("rope", {});
  const auto a = map_of(sinusoidal, "similarity").values, b = map_of(rope, "score").values;
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12);
}

TEST(Alibi, BiasFallsByTheSlopeOfItsHead) {
  const auto all = figures("alibi", {{"heads", "8"}, {"length", "10"}});
  const chart::HeatMap heads = map_of(all, "heads");
  EXPECT_EQ(heads.values[9], -9 * 0.5);
  EXPECT_EQ(heads.values[7 * 10 + 9], -9.0 / 256);
  const chart::HeatMap pairs = map_of(all, "bias");
  EXPECT_EQ(pairs.values[7 * 10 + 3], -2) << "query 7, key 3, slope 1/2";
  EXPECT_TRUE(std::isnan(pairs.values[3 * 10 + 7])) << "a key after the query";
  EXPECT_EQ(line_of(all).series.size(), 8U);
  EXPECT_LE(line_of(figures("alibi", {{"heads", "1000"}})).series.size(), 12U);
}

// |m - n| = |n - m|: ALiBi cannot tell before from after, unless future_scale is not 1.
TEST(Alibi, BothSidesAreSymmetricUnlessScaled) {
  const auto both = figures("alibi", {{"direction", "both"}, {"length", "5"}});
  const chart::Series line = line_of(both).series.at(0);
  EXPECT_THAT(line.x, ElementsAre(-4, -3, -2, -1, 0, 1, 2, 3, 4));
  EXPECT_THAT(line.y, ElementsAre(-2, -1.5, -1, -.5, 0, -.5, -1, -1.5, -2));
  const chart::HeatMap heads = map_of(both, "heads"), pairs = map_of(both, "bias");
  EXPECT_EQ(heads.columns.count, 9);
  EXPECT_EQ(heads.columns.first, -4);
  EXPECT_EQ(heads.values[0], heads.values[8]);
  EXPECT_EQ(pairs.values[5 * 1 + 3], pairs.values[5 * 3 + 1]) << "query 1, key 3 and reversed";
  const auto scaled =
      figures("alibi", {{"direction", "both"}, {"length", "3"}, {"future-scale", "2"}});
  EXPECT_THAT(line_of(scaled).series[0].y, ElementsAre(-2, -1, 0, -.5, -1));
}

TEST(Alibi, AScaleOfTheFutureNeedsKeysAfterTheQuery) {
  EXPECT_EQ(complaint_about([] {
              figures("alibi", {{"future-scale", "2"}});
            }),
            "plot alibi: --future-scale: expected 1 without --direction both, as no key after the "
            "query is seen, but got 2");
  EXPECT_EQ(complaint_about([] { figures("alibi", {{"future-scale", "1"}}); }), "no complaint");
}

TEST(T5, BucketsAreThoseOfThePaper) {
  const chart::Series causal = line_of(figures("t5", {})).series.at(0);
  EXPECT_EQ(causal.y[0], 0);
  EXPECT_EQ(causal.y[15], 15);
  EXPECT_EQ(causal.y[16], 16);
  EXPECT_EQ(causal.y[127], 31);
  const chart::Series both = line_of(figures("t5", {{"direction", "both"}})).series.at(0);
  EXPECT_EQ(both.x.front(), -255);
  EXPECT_EQ(both.y[255], 0) << "distance 0";
  EXPECT_EQ(both.y[254], 17) << "the next key";
  EXPECT_EQ(both.y[256], 1) << "the key before";
}

TEST(Alibi, WeightsAreHalfAtLn2OverTheSlope) {
  const auto chart = figure_of<chart::LineChart>(figures("alibi", {}), "weights");
  ASSERT_EQ(chart.series.size(), 9U);
  EXPECT_EQ(chart.series[0].name, "head 1: half at 1.39");
  EXPECT_EQ(chart.series[7].name, "head 8: half at 177");
  const chart::Series& last = chart.series[7];
  for (size_t n = 0; n < last.x.size(); ++n) {
    EXPECT_NEAR(last.y[n], std::pow(0.5, last.x[n] / (256 * std::log(2.0))), 1e-12);
  }
  const chart::Series& window = chart.series[8];
  EXPECT_EQ(window.name, "window 32");
  for (size_t n = 0; n < window.x.size(); ++n) {
    if (window.x[n] == 32) continue;  // the edge
    EXPECT_EQ(window.y[n], window.x[n] < 32 ? 1 : 0) << window.x[n];
  }
}

// c(d) with first_index 0 is p_m . p_n, and near a logarithm.
TEST(Sandwich, IsTheProductOfSinusoids) {
  const auto all = figures("sandwich", {{"first-index", "0"}, {"length", "300"}});
  const auto chart = figure_of<chart::LineChart>(all, "logarithm");
  ASSERT_EQ(chart.series.size(), 4U);
  const chart::Series &curve = chart.series[0], &products = chart.series[1];
  size_t points = 0;
  for (size_t n = 0; n < products.x.size(); ++n) {
    if (std::isnan(products.y[n])) continue;
    const auto distance = static_cast<size_t>(products.x[n]);
    EXPECT_NEAR(products.y[n], curve.y[distance - 1], 1e-9) << distance;
    ++points;
  }
  EXPECT_EQ(points, 9U) << "1 to 256";
  double from_logarithm = 0, from_line = 0;
  for (size_t n = 0; n < curve.y.size(); ++n) {
    from_logarithm += std::abs(curve.y[n] - chart.series[2].y[n]) / 299;
    from_line += std::abs(curve.y[n] - chart.series[3].y[n]) / 299;
  }
  EXPECT_LT(from_logarithm, 3);
  EXPECT_GT(from_line, 10);
  const auto heads = line_of(all).series;
  ASSERT_EQ(heads.size(), 4U);
  EXPECT_NEAR(heads[0].y[0], 64.0 / 2, 1e-12) << "c(0) / (8 / 4)";
  EXPECT_NEAR(heads[3].y[5], curve.y[4] / 8, 1e-12);
}

TEST(T5, BucketsAreStepsOnALogarithmicAxis) {
  const auto chart = figure_of<chart::LineChart>(figures("t5", {}), "steps");
  EXPECT_EQ(chart.x.scale, chart::Scale::kLog2);
  const chart::Series& steps = chart.series.at(0);
  ASSERT_EQ(steps.x.size(), 2U * 255 - 1);
  EXPECT_EQ(steps.x[0], 1);
  for (size_t n = 1; n < steps.x.size(); ++n) {
    EXPECT_TRUE(steps.x[n] == steps.x[n - 1] || steps.y[n] == steps.y[n - 1]) << "no slope";
  }
  EXPECT_EQ(steps.y.back(), 31);
}

TEST(Shaw, RowsAreClippedDistances) {
  const auto all = figures("shaw", {{"clip", "2"}, {"length", "5"}});
  EXPECT_THAT(line_of(all).series[0].y, ElementsAre(4, 4, 4, 3, 2, 1, 0, 0, 0));
  EXPECT_EQ(map_of(all, "row").values[4], 4) << "query 0, key 4";
}

TEST(Window, SeesKeysLessThanItsSizeAway) {
  const auto causal = figures("window", {{"window", "2"}, {"length", "4"}});
  EXPECT_THAT(line_of(causal).series[0].y, ElementsAre(1, 1, 0, 0));
  EXPECT_TRUE(std::isnan(map_of(causal, "visible").values[1]));
  const auto both = figures("window", {{"window", "2"}, {"length", "4"}, {"direction", "both"}});
  EXPECT_THAT(line_of(both).series[0].y, ElementsAre(0, 0, 1, 1, 1, 0, 0));
}

TEST(Binary, SimilarityDependsOnMoreThanDistance) {
  EXPECT_EQ(map_of(figures("binary", {}), "vectors").columns.count, 16) << "as the method itself";
  const auto signs = figures("binary", {{"bits", "8"}, {"levels", "-1,1"}});
  const chart::Series line = line_of(signs).series.at(0);
  EXPECT_NEAR(line.y[0], 1, 1e-12);
  EXPECT_NEAR(line.high[1], 0.75, 1e-12) << "0 and 1 differ in one of eight bits";
  EXPECT_NEAR(line.low[1], -0.75, 1e-12) << "63 and 64 in seven";
  const auto zero = figures("binary", {{"levels", "0,1"}});
  EXPECT_TRUE(std::isnan(map_of(zero, "similarity").values[0])) << "position 0 is a zero vector";
  const chart::Series pairs = line_of(zero).series.at(0);
  EXPECT_EQ(pairs.x.front(), 0);
  EXPECT_EQ(pairs.x.back(), 126) << "distance 127 is that of position 0 alone";
  for (const std::vector<double>& values : {pairs.y, pairs.low, pairs.high}) {
    ASSERT_EQ(values.size(), 127U);
    for (const double value : values) EXPECT_TRUE(std::isfinite(value));
  }
  const auto one = figures("binary", {{"levels", "0,1"}, {"length", "1"}});
  EXPECT_THAT(line_of(one).series.at(0).low, ::testing::IsEmpty());
}

TEST(Clock, IsBackAfterItsPeriods) {
  const chart::Series line = line_of(figures("clock", {{"periods", "4,6"}})).series.at(0);
  EXPECT_NEAR(line.y[12], 1, 1e-12);
  EXPECT_LT(line.y[6], 0.9);
}

// sin(k / 3600^(2j)) is a sinusoid of width 8 and base 3600^8.
TEST(Clock, TheAlienOneIsASinusoidOfAnotherBase) {
  const auto alien = figures("clock", {{"system", "alien"}, {"length", "200"}});
  const auto sinusoid =
      figures("sinusoidal", {{"dim", "8"}, {"base", "2.821109907456e28"}, {"length", "200"}});
  const chart::HeatMap a = map_of(alien, "vectors"), b = map_of(sinusoid, "vectors");
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t n = 0; n < a.values.size(); ++n) EXPECT_NEAR(a.values[n], b.values[n], 1e-12);
  EXPECT_EQ(a.subtitle, "4 hands, ratio 3600^2");
  const auto three = figures("clock", {{"system", "alien"}, {"hands", "3"}});
  EXPECT_EQ(map_of(three, "vectors").columns.count, 6);
}

TEST(Clock, OptionsOfTheOtherSystemAreRefused) {
  const auto error = [](std::map<std::string, std::string> texts) {
    return complaint_about([&] { figures("clock", texts); });
  };
  EXPECT_EQ(error({{"hands", "3"}}),
            "plot clock: --hands: expected auto, as each of the periods is a hand, but got 3");
  EXPECT_EQ(error({{"system", "alien"}, {"periods", "4,6"}}),
            "plot clock: --periods: expected 60,3600,43200, as the alien clock has periods of its "
            "own, but got 4,6");
  EXPECT_EQ(error({{"system", "alien"}, {"hands", "0"}}),
            "plot clock: --hands: expected an integer from 1 to 1024, but got 0");
}

// Vaswani et al. 2017 against Yan et al. 2019: distance explains p.p wholly, and little of it
// behind random projections.
TEST(Projected, DistanceExplainsProductsOfSinusoidsWithoutWOnly) {
  const auto all = figures("sinusoidal", {});
  const auto table = figure_of<NumberTable>(all, "explained");
  EXPECT_THAT(table.columns, ElementsAre("past", "all"));
  ASSERT_EQ(table.rows.size(), 5U);
  EXPECT_EQ(table.rows[0].first, "no W");
  EXPECT_NEAR(table.rows[0].second[0], 1, 1e-12);
  EXPECT_NEAR(table.rows[0].second[1], 1, 1e-12);
  for (size_t head = 1; head < 5; ++head) {
    EXPECT_LT(table.rows[head].second[0], 0.3) << head;
    EXPECT_GT(table.rows[head].second[0], 0) << head;
  }
  const auto panels = figure_of<chart::Panels>(all, "explained-distance");
  ASSERT_EQ(panels.parts.size(), 2U);
  const auto& without = std::get<chart::LineChart>(panels.parts[0]);
  const auto& behind = std::get<chart::LineChart>(panels.parts[1]);
  EXPECT_THAT(without.subtitle, HasSubstr("variance among earlier keys distance explains"));
  ASSERT_EQ(without.series.size(), 1U);
  EXPECT_EQ(without.series[0].name, "no W: 100 %");
  EXPECT_EQ(behind.series.at(0).name,
            fmt::format("head 1: {:.0f} %", 100 * table.rows[1].second[0]));
  EXPECT_NE(fmt::format("{:.2f}", table.rows[1].second[0]),
            fmt::format("{:.2f}", table.rows[1].second[1]));
  for (size_t n = 0; n < without.series[0].x.size(); ++n) {
    EXPECT_NEAR(without.series[0].low[n], without.series[0].high[n], 1e-9) << "a band of no width";
  }
  double width = 0;
  for (size_t n = 0; n < behind.series[0].x.size(); ++n) {
    width = std::max(width, behind.series[0].high[n] - behind.series[0].low[n]);
  }
  EXPECT_GT(width, 2) << "standard deviations";
}

TEST(Projected, ProductsAreThoseOfTheVectors) {
  const auto all = figures("binary", {{"length", "4"}, {"bits", "3"}, {"levels", "-1,1"}});
  EXPECT_EQ(map_of(all, "product").values[4 * 1 + 2], -1) << "001 and 010 differ in two of three";
  EXPECT_EQ(map_of(all, "random-w").values.size(), 16U);
}

TEST(Projected, SeedsDifferAndRepeat) {
  const auto draw = [](const char* seed) {
    return map_of(figures("clock", {{"length", "8"}, {"seed", seed}}), "random-w").values;
  };
  EXPECT_EQ(draw("1"), draw("1"));
  EXPECT_NE(draw("1"), draw("2"));
}

}  // namespace
}  // namespace sextant::cli
