#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/cli/plotted.h"

namespace sextant::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Su et al. 2021: a score depends on the distance only, as the mean of cos(d theta_f).
TEST(Rope, ScoreOfEqualVectorsIsTheMeanOfTheCosines) {
  const auto all = figures("rope", {{"dim", "8"}, {"length", "40"}, {"base", "100"}});
  const chart::Series score = line_of(all).series.at(0);
  for (size_t d = 0; d < 40; ++d) {
    double mean = 0;
    for (int f = 0; f < 4; ++f) {
      mean += std::cos(static_cast<double>(d) * std::pow(100.0, -2.0 * f / 8)) / 4;
    }
    EXPECT_NEAR(score.y[d], mean, 1e-12) << d;
    EXPECT_NEAR(score.low[d], score.high[d], 1e-12) << "the same at each position";
  }
}

TEST(Rope, PairingMovesChannelsAndChangesNoScore) {
  const auto half = figures("rope", {{"dim", "8"}});
  const auto interleaved = figures("rope", {{"dim", "8"}, {"pairing", "interleaved"}});
  const auto a = map_of(half, "vectors").values, b = map_of(interleaved, "vectors").values;
  for (size_t row = 0; row < 128; ++row) {
    for (size_t f = 0; f < 4; ++f) {
      EXPECT_EQ(a[8 * row + f], b[8 * row + 2 * f]);
      EXPECT_EQ(a[8 * row + 4 + f], b[8 * row + 2 * f + 1]);
    }
  }
  for (size_t i = 0; i < 128; ++i) {
    EXPECT_NEAR(line_of(half).series[0].y[i], line_of(interleaved).series[0].y[i], 1e-12);
  }
}

TEST(Rope, ChannelsThatDoNotTurnKeepTheirShareOfTheScore) {
  const auto none = figures("rope", {{"dim", "8"}, {"rotated", "0"}});
  const chart::Series flat = line_of(none).series.at(0);
  ASSERT_EQ(flat.y.size(), 128);
  for (const double score : flat.y) EXPECT_NEAR(score, 1, 1e-12);
  const auto whole = figures("rope", {{"dim", "4"}});
  const auto half = figures("rope", {{"dim", "8"}, {"rotated", "4"}});
  for (size_t d = 0; d < 128; ++d) {
    const double expected = (1 + line_of(whole).series[0].y[d]) / 2;
    EXPECT_NEAR(line_of(half).series[0].y[d], expected, 1e-12);
  }
}

TEST(Rope, AStretchedOneTurnsAsItsStretchSays) {
  const auto plain = figures("rope", {{"dim", "8"}, {"length", "8"}});
  const auto pi = figures("rope", {{"dim", "8"}, {"length", "16"}, {"stretch", "linear*2"}});
  const auto a = map_of(plain, "vectors").values, b = map_of(pi, "vectors").values;
  for (size_t row = 0; row < 8; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      EXPECT_EQ(a[8 * row + column], b[8 * 2 * row + column]) << row;
    }
  }
  // The stretch follows the length of the sequence: up to the training length nothing changes.
  const auto dynamic = [](const std::string& length) {
    return map_of(figures("rope", {{"dim", "8"},
                                   {"length", length},
                                   {"train-length", "8"},
                                   {"stretch", "{\"rope_type\": \"dynamic-linear\"}"}}),
                  "vectors")
        .values;
  };
  EXPECT_EQ(dynamic("8"), a);
  EXPECT_EQ(dynamic("16"), b);
  EXPECT_THAT(complaint_about([] {
                figures("rope", {{"train-length", "128"}});
              }),
              HasSubstr("--train-length: expected a --stretch"));
  const auto yarn = figures("rope", {{"dim", "8"}, {"length", "8"}, {"stretch", "yarn*8"}});
  EXPECT_NEAR(map_of(yarn, "vectors").values[0], 0.1 * std::log(8.0) + 1, 1e-12);
  EXPECT_THAT(map_of(yarn, "vectors").subtitle, HasSubstr("yarn*8 of 128, gain 1.208"));
}

TEST(Rope, PiIsLinearWhereverItIsTyped) {
  const auto vectors = [](const char* stretch) {
    return map_of(figures("rope", {{"dim", "8"}, {"stretch", stretch}}), "vectors").values;
  };
  EXPECT_EQ(vectors("pi*8"), vectors("linear*8"));
  EXPECT_EQ(vectors("{\"rope_type\": \"pi\", \"factor\": 8}"), vectors("linear*8"));
  EXPECT_EQ(vectors("dynamic-pi"), vectors("dynamic-linear"));
  EXPECT_NE(vectors("pi*8"), vectors("none"));
}

TEST(Rope, AStretchIsDrawnBesideTheScoresWithoutIt) {
  const auto plain = figures("rope", {{"dim", "16"}, {"rotated", "8"}});
  const auto pi = figures("rope", {{"dim", "16"}, {"rotated", "8"}, {"stretch", "pi*4"}});
  ASSERT_EQ(line_of(pi).series.size(), 2U);
  EXPECT_EQ(line_of(pi).series[0].name, "pi*4");
  for (size_t d = 0; d < 128; ++d) {
    EXPECT_NEAR(line_of(pi).series[1].y[d], line_of(plain).series[0].y[d], 1e-12) << d;
  }
}

// RoFormer, section 3.4.3.
TEST(Rope, TheBoundLiesAboveEqualVectors) {
  const auto all = figures("rope", {{"length", "300"}});
  const auto bound = figure_of<chart::LineChart>(all, "bound");
  ASSERT_EQ(bound.series.size(), 3U);
  EXPECT_EQ(bound.series[0].name, "bound: mean |S| / 16.5") << "the mean of 1 to 32";
  EXPECT_EQ(bound.series[0].y[0], 1);
  EXPECT_EQ(bound.series[0].x.back(), 1023);
  for (size_t d = 0; d < 300; ++d) {
    EXPECT_GE(16.5 * bound.series[0].y[d], std::abs(bound.series[1].y[d])) << d;
    EXPECT_NEAR(bound.series[1].y[d], line_of(all).series[0].y[d], 1e-12) << d;
    EXPECT_EQ(bound.series[2].y[d], 1);
  }
  const auto pi = figure_of<chart::LineChart>(
      figures("rope", {{"length", "300"}, {"stretch", "pi*2"}}), "bound");
  ASSERT_EQ(pi.series.size(), 4U);
  EXPECT_EQ(pi.series[3].y, bound.series[0].y) << "without the stretch";
  EXPECT_NEAR(pi.series[0].y[200], bound.series[0].y[100], 1e-12);
}

// It is in the query and in the key.
TEST(Rope, AGainIsSquaredInScoresAndLeftOutOfThePair) {
  const double squared = std::pow(0.1 * std::log(8.0) + 1, 2);
  const auto plain = figures("rope", {}), yarn = figures("rope", {{"stretch", "yarn*8"}});
  const chart::Series scores = line_of(yarn).series.at(0);
  EXPECT_NEAR(scores.y[0], squared, 1e-12);
  EXPECT_NEAR(map_of(yarn, "score").values[0], squared, 1e-12);
  const auto bound = figure_of<chart::LineChart>(yarn, "bound");
  ASSERT_EQ(bound.series.size(), 4U);
  EXPECT_NEAR(bound.series[0].y[0], squared, 1e-12);
  EXPECT_EQ(bound.series[0].name, "bound: 1.459 mean |S| / 16.5");
  EXPECT_EQ(bound.series[2].name, "largest: 1.459");
  for (size_t d = 0; d < 128; ++d) {
    EXPECT_NEAR(bound.series[1].y[d], scores.y[d], 1e-12) << d;
    EXPECT_GE(16.5 * bound.series[0].y[d], std::abs(scores.y[d])) << d;
    EXPECT_NEAR(bound.series[2].y[d], squared, 1e-12) << d;
  }
  EXPECT_EQ(bound.series[3].y, figure_of<chart::LineChart>(plain, "bound").series[0].y);
  const auto half = figures("rope", {{"rotated", "32"}, {"stretch", "yarn*8"}});
  EXPECT_NEAR(line_of(half).series[0].y[0], (squared + 1) / 2, 1e-12);
  EXPECT_NEAR(line_of(half).series[1].y[0], 1, 1e-12) << "without the stretch";

  const auto pair = figure_of<chart::PlaneChart>(yarn, "pair");
  EXPECT_THAT(pair.subtitle, HasSubstr("gain 1.208; gain left out"));
  for (const auto& point : pair.panels.at(1).series.at(0).points) {
    EXPECT_NEAR(std::hypot(point.x, point.y), 1, 1e-12) << point.label;
  }
  EXPECT_THAT(figure_of<chart::PlaneChart>(plain, "pair").subtitle,
              ::testing::Not(HasSubstr("gain")));
}

TEST(Rope, APairIsAPointThatPositionsRotate) {
  const auto plane = figure_of<chart::PlaneChart>(
      figures("rope", {{"dim", "8"}, {"base", "100"}, {"length", "12"}, {"pair", "1"}}), "pair");
  ASSERT_EQ(plane.panels.size(), 1U);
  EXPECT_EQ(plane.panels[0].arc, 0);
  const auto& points = plane.panels[0].series.at(0).points;
  ASSERT_EQ(points.size(), 12U);
  const double theta = std::pow(100.0, -2.0 / 8);
  for (size_t n = 0; n < 12; ++n) {
    EXPECT_NEAR(points[n].x, std::cos(static_cast<double>(n) * theta), 1e-12);
    EXPECT_NEAR(points[n].y, std::sin(static_cast<double>(n) * theta), 1e-12);
    EXPECT_EQ(points[n].label, std::to_string(n));
  }
  EXPECT_EQ(plane.x, "channel 1");
  EXPECT_EQ(plane.y, "channel 5");
}

TEST(Rope, AStretchKeepsTheNewPositionsWithinTheAnglesOfTraining) {
  const auto plane = figure_of<chart::PlaneChart>(
      figures("rope", {{"stretch", "pi*8"}, {"length", "1024"}, {"train-length", "128"}}), "pair");
  ASSERT_EQ(plane.panels.size(), 2U);
  const double arc = plane.panels[0].arc;
  EXPECT_GT(arc, 0.5);
  EXPECT_LT(arc, 2.1) << "a third of a circle";
  const auto within = [&](const chart::PlaneChart::Panel& panel) {
    size_t inside = 0;
    for (const auto& point : panel.series.at(1).points) {
      const double angle = std::atan2(point.y, point.x);
      inside += angle >= 0 && angle <= arc + 0.02;
    }
    return static_cast<double>(inside) / static_cast<double>(panel.series[1].points.size());
  };
  EXPECT_LT(within(plane.panels[0]), 0.6);
  EXPECT_EQ(within(plane.panels[1]), 1);
}

TEST(Rope, ThePairIsTheFastestThatDoesNotRotateTooFar) {
  const auto drawn = [](std::map<std::string, std::string> texts) {
    texts.insert({{"dim", "8"}, {"base", "10000"}});
    return figure_of<chart::PlaneChart>(figures("rope", texts), "pair").x;
  };
  EXPECT_EQ(drawn({{"length", "6"}}), "channel 0") << "6 rad";
  EXPECT_EQ(drawn({{"length", "7"}}), "channel 1") << "0.7 rad";
  EXPECT_EQ(drawn({{"length", "8"}, {"stretch", "pi*2"}, {"train-length", "2"}}), "channel 0");
  EXPECT_EQ(drawn({{"length", "8"}, {"stretch", "pi*2"}, {"train-length", "3"}}), "channel 1");
  EXPECT_EQ(drawn({{"length", "1000000"}, {"step", "1000"}}), "channel 3") << "the slowest";
}

TEST(Rope, PairsThatItDoesNotHaveAreRefused) {
  const auto error = [](std::map<std::string, std::string> texts) {
    return complaint_about([&] { figures("rope", texts); });
  };
  EXPECT_THAT(error({{"pair", "32"}}),
              HasSubstr("plot rope: --pair: expected an integer from 0 to 31, but got 32"));
  EXPECT_THAT(error({{"pair", "0"}, {"rotated", "0"}}),
              HasSubstr("plot rope: --pair: expected auto, as no channel is rotated"));
}

// The heat map above, and the line below of the same distances.
TEST(Rope, TheTermsOfThePairsHaveTheScoreAsMean) {
  const auto all = figures("rope", {{"dim", "8"}, {"base", "100"}, {"length", "40"}});
  const auto terms = figure_of<chart::Panels>(all, "terms");
  ASSERT_EQ(terms.parts.size(), 2U);
  const auto& map = std::get<chart::HeatMap>(terms.parts[0]);
  const auto& mean = std::get<chart::LineChart>(terms.parts[1]).series.at(0);
  EXPECT_EQ(map.rows.count, 4);
  ASSERT_EQ(map.values.size(), 4U * 40);
  EXPECT_NEAR(map.values[40 + 7], std::cos(7 * std::pow(100.0, -1.0 / 4)), 1e-12) << "pair 1";
  for (size_t d = 0; d < 40; ++d) {
    double sum = 0;
    for (size_t pair = 0; pair < 4; ++pair) sum += map.values[40 * pair + d];
    EXPECT_NEAR(mean.y[d], sum / 4, 1e-12) << d;
    EXPECT_NEAR(mean.y[d], line_of(all).series[0].y[d], 1e-12) << d;
  }
}

TEST(Rope, AShiftOfBothKeepsTheAngleBetween) {
  const auto shift = figure_of<chart::PlaneChart>(figures("rope", {{"pair", "9"}}), "shift");
  ASSERT_EQ(shift.panels.size(), 3U);
  const auto cosine = [&](size_t panel) {
    const auto& series = shift.panels[panel].series;
    const auto &q = series.at(0).points.at(0), &k = series.at(1).points.at(0);
    return q.x * k.x + q.y * k.y;
  };
  EXPECT_NEAR(cosine(2), cosine(1), 1e-12);
  EXPECT_GT(std::abs(cosine(1) - cosine(0)), 0.1);
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_NEAR(std::cos(shift.panels[n].arc), cosine(n), 1e-12);
    const auto& [q, k] =
        std::pair(shift.panels[n].series[0].points[0], shift.panels[n].series[1].points[0]);
    const double first = shift.panels[n].arc_from, last = first + shift.panels[n].arc;
    const double from_key = std::abs(std::cos(first) - k.x) + std::abs(std::cos(last) - q.x);
    const double from_query = std::abs(std::cos(first) - q.x) + std::abs(std::cos(last) - k.x);
    EXPECT_NEAR(std::min(from_key, from_query), 0, 1e-12) << "the arc joins the two";
  }
}

TEST(Stretches, PiBringsNeighboursTogether) {
  const auto all = figures("pi", {});
  const auto plane = figure_of<chart::PlaneChart>(all, "neighbours");
  ASSERT_EQ(plane.panels.size(), 2U);
  for (size_t n = 0; n < 9; ++n) {
    EXPECT_NEAR(plane.panels[0].series[0].points[n].x, std::cos(static_cast<double>(n)), 1e-12);
    EXPECT_NEAR(plane.panels[1].series[0].points[n].x, std::cos(static_cast<double>(n) / 8), 1e-12);
  }
  const auto numbers = figure_of<NumberTable>(all, "numbers");
  EXPECT_EQ(numbers.columns.back(), "neighbours");
  EXPECT_NEAR(numbers.rows[0].second.back(), line_of(all).series[1].y[1], 1e-12) << "without it";
  EXPECT_NEAR(numbers.rows[1].second.back(), line_of(all).series[0].y[1], 1e-12);
  EXPECT_THAT(plane.panels[1].name, HasSubstr("0.125 rad, score of neighbours 0.9994"));
}

TEST(Stretches, NtkIsAnotherBase) {
  const auto bases = [](const char* method) {
    const auto numbers = figure_of<NumberTable>(figures(method, {}), "numbers");
    return std::pair(numbers.rows[0].second[0], numbers.rows[1].second[0]);
  };
  EXPECT_NEAR(bases("ntk").first, 10000, 1e-6);
  EXPECT_NEAR(bases("ntk").second, 10000 * std::pow(8.0, 64.0 / 62), 1e-6);
  EXPECT_NEAR(bases("pi").second, 10000, 1e-6);
  EXPECT_TRUE(std::isnan(bases("yarn").second));
}

TEST(Stretches, YarnKeepsFastPairsAndPiNone) {
  const auto names = [](const char* method) {
    std::string all;
    for (const auto& panel : figure_of<chart::PlaneChart>(figures(method, {}), "pairs").panels) {
      all += panel.name + "; ";
    }
    return all;
  };
  EXPECT_EQ(names("yarn"),
            "Pair 0: kept, 6.283 a circle; Pair 6: 45 % kept, 67.59 a circle; Pair 15: "
            "interpolated, 3769 a circle; ");
  EXPECT_THAT(names("pi"), ::testing::StartsWith("Pair 0: interpolated, 50.27 a circle; "));
  EXPECT_THAT(names("pi"), ::testing::Not(HasSubstr("kept")));
}

TEST(Stretches, WavelengthsOfPiNtkAndYarnAreShiftedTiltedAndBent) {
  const auto chart = figure_of<chart::LineChart>(figures("stretches", {}), "wavelengths");
  ASSERT_EQ(chart.series.size(), 5U);
  const auto ratio = [&](size_t series, size_t pair) {
    return chart.series[series].y[pair] / chart.series[0].y[pair];
  };
  for (size_t pair = 0; pair < 32; ++pair) {
    EXPECT_NEAR(ratio(1, pair), 8, 1e-12) << "PI";
    EXPECT_NEAR(ratio(2, pair), std::pow(8.0, static_cast<double>(pair) / 31), 1e-9) << "NTK";
    EXPECT_GE(ratio(3, pair), ratio(3, pair == 0 ? 0 : pair - 1) - 1e-12) << "YaRN";
    EXPECT_EQ(chart.series[4].y[pair], 128);
  }
  EXPECT_NEAR(ratio(3, 0), 1, 1e-12);
  EXPECT_NEAR(ratio(3, 31), 8, 1e-12);
  EXPECT_EQ(chart.series[2].name, "ntk*8: base 85550");
}

// By the definitions of the papers; plot_command_test.cc compares with the methods themselves.
TEST(Stretches, PositionsUsedFollowTheDefinitions) {
  const auto chart = figure_of<chart::LineChart>(figures("stretches", {}), "used");
  ASSERT_EQ(chart.series.size(), 7U);
  const auto used = [&](size_t series, size_t d) { return chart.series[series].y[d]; };
  for (size_t d = 0; d < 1024; ++d) {
    const auto distance = static_cast<double>(d);
    EXPECT_EQ(used(0, d), distance);
    EXPECT_EQ(used(1, d), distance / 8);
    EXPECT_EQ(used(2, d), std::min(distance, 64.0)) << "ReRoPE";
    const double leaky = d < 64 ? distance : 64 + (distance - 64) / 15;
    EXPECT_NEAR(used(3, d), leaky, 1e-12) << "(1024 - 64) / (128 - 64)";
    for (size_t series = 1; series < 6; ++series) {
      EXPECT_LE(used(series, d), 128) << chart.series[series].name << " " << d;
      EXPECT_EQ(d < 32 && series > 1 ? used(series, d) : distance, distance) << series;
    }
  }
  EXPECT_EQ(chart.series[6].y[0], 127);
  EXPECT_THAT(complaint_about([] {
                figures("stretches", {{"train-length", "3"}});
              }),
              HasSubstr("plot stretches: --train-length: expected an integer from 4"));
}

TEST(Stretches, DrawAsRopeWithTheStretch) {
  const auto pi = figures("pi", {{"length", "64"}});
  const auto rope = figures("rope", {{"length", "64"}, {"stretch", "pi*8"}});
  ASSERT_EQ(pi.size(), rope.size());
  for (const char* name : {"vectors", "score"}) {
    EXPECT_EQ(map_of(pi, name).values, map_of(rope, name).values) << name;
  }
  EXPECT_EQ(line_of(pi).series[0].name, "pi*8");
  EXPECT_EQ(line_of(pi).subtitle, line_of(rope).subtitle);
  const auto yarn = figures("yarn", {{"length", "8"}, {"factor", "4"}, {"train-length", "64"}});
  EXPECT_THAT(line_of(yarn).subtitle, HasSubstr("yarn*4 of 64, gain 1.139"));
  const auto dynamic = figures("dynamic-pi", {{"length", "64"}, {"train-length", "16"}});
  const auto fourfold = figures("pi", {{"length", "64"}, {"factor", "4"}});
  EXPECT_EQ(map_of(dynamic, "vectors").values, map_of(fourfold, "vectors").values);
  EXPECT_THAT(complaint_about([] {
                figures("ntk", {{"factor", "0.5"}});
              }),
              HasSubstr("plot ntk: --factor: expected a number from 1"));
}

}  // namespace
}  // namespace sextant::cli
