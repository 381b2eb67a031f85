#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "sextant/base/error.h"
#include "sextant/cli/plot/figures.h"
#include "sextant/cli/plot/plotted.h"
#include "sextant/files/npy.h"

namespace sextant::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const PlottedMethod& method_named(const std::string& name) {
  for (const PlottedMethod& method : plotted_methods()) {
    if (method.name == name) return method;
  }
  throw Error("no method " + name);
}

// The figures of a method with these options, and defaults for the others.
std::vector<Figure> figures(const std::string& name, std::map<std::string, std::string> texts) {
  const PlottedMethod& method = method_named(name);
  for (const PlotOption& option : method.options) texts.insert({option.name, option.otherwise});
  return method.figures(PlotValues(name, texts));
}

chart::HeatMap map_of(const std::vector<Figure>& all, const std::string& name) {
  for (const Figure& figure : all) {
    if (figure.name == name) return std::get<chart::HeatMap>(figure.chart);
  }
  throw Error("no figure " + name);
}

chart::LineChart line_of(const std::vector<Figure>& all) {
  return std::get<chart::LineChart>(all.back().chart);
}

std::string complaint_about(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(Plotted, EachMethodDrawsWithItsDefaults) {
  ASSERT_FALSE(plotted_methods().empty());
  for (const PlottedMethod& method : plotted_methods()) {
    const std::vector<Figure> drawn = figures(method.name, {});
    EXPECT_GE(drawn.size(), 2) << method.name << ": a map and a line, at least";
    for (const Figure& figure : drawn) {
      const std::string drawing =
          std::visit([](const auto& one) { return svg(one); }, figure.chart);
      EXPECT_THAT(drawing, HasSubstr("</svg>")) << method.name << " " << figure.name;
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
          AllOf(HasSubstr("--" + option.name), testing::ContainsRegex("but got \"?nonsense")))
          << method.name;
    }
  }
}

TEST(Plotted, AnyLengthFromOnePositionOn) {
  for (const PlottedMethod& method : plotted_methods()) {
    for (const char* length : {"1", "2", "3"}) {
      const std::vector<Figure> drawn = figures(method.name, {{"length", length}});
      EXPECT_GE(drawn.size(), 2) << method.name << " " << length;
      for (const Figure& figure : drawn) {
        EXPECT_NO_THROW(std::visit([](const auto& one) { svg(one); }, figure.chart)) << length;
      }
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
  const chart::Series line = line_of(figures("binary", {})).series.at(0);
  EXPECT_NEAR(line.y[0], 1, 1e-12);
  EXPECT_NEAR(line.high[1], 0.75, 1e-12) << "0 and 1 differ in one of eight bits";
  EXPECT_NEAR(line.low[1], -0.75, 1e-12) << "63 and 64 in seven";
  const auto zero = figures("binary", {{"levels", "0,1"}});
  EXPECT_TRUE(std::isnan(map_of(zero, "similarity").values[0])) << "position 0 is a zero vector";
}

TEST(Clock, IsBackAfterItsPeriods) {
  const chart::Series line = line_of(figures("clock", {{"periods", "4,6"}})).series.at(0);
  EXPECT_NEAR(line.y[12], 1, 1e-12);
  EXPECT_LT(line.y[6], 0.9);
}

// ---- the command ----

struct Outcome {
  int status = 0;
  std::string words;  // standard output and error
};

class Command : public testing::Test {
 protected:
  Command() {
    std::string name = (std::filesystem::temp_directory_path() / "sextant-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Command() override { std::filesystem::remove_all(folder_); }

  Outcome run(const std::string& arguments) const {
    const std::string line =
        "cd " + folder_.string() + " && '" SEXTANT_COMMAND "' " + arguments + " 2>&1";
    std::FILE* pipe = ::popen(line.c_str(), "r");
    Outcome out;
    std::array<char, 4096> buffer;
    while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      out.words.append(buffer.data(), got);
    }
    out.status = WEXITSTATUS(::pclose(pipe));
    return out;
  }

  std::filesystem::path folder_;
};

TEST_F(Command, WritesPicturesAndTheirNumbersAndSaysWhere) {
  const Outcome outcome = run("plot rope --dim 8 --length 16 --format svg --out pictures/deep");
  EXPECT_EQ(outcome.status, 0) << outcome.words;
  EXPECT_EQ(outcome.words,
            "pictures/deep/rope-vectors.npy\npictures/deep/rope-vectors.svg\n"
            "pictures/deep/rope-score.npy\npictures/deep/rope-score.svg\n"
            "pictures/deep/rope-distance.csv\npictures/deep/rope-distance.svg\n");
  const Array array = read_npy(folder_ / "pictures/deep/rope-vectors.npy");
  EXPECT_THAT(array.shape, ElementsAre(16, 8));
  EXPECT_GT(std::filesystem::file_size(folder_ / "pictures/deep/rope-distance.svg"), 1000U);
}

TEST_F(Command, WritesPngToo) {
  if (std::system("rsvg-convert --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no rsvg-convert";
  EXPECT_EQ(run("plot alibi --out .").status, 0);
  EXPECT_GT(std::filesystem::file_size(folder_ / "alibi-bias.png"), 1000U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "alibi-bias.svg"));
}

TEST_F(Command, SaysWhatIsWrongWithACommandLine) {
  const auto expect = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.words, HasSubstr(words)) << arguments;
  };
  expect("plot", "expected one of alibi, binary, c");
  expect("plot foo", "but got foo");
  expect("plot learned", "its table is all training");
  expect("plot rope --dim x", "plot rope: --dim: expected an integer from 1 to 4096, but got x");
  expect("plot rope --dim 7", "expected an even number");
  expect("plot rope --stretch yarn", "plot rope: --stretch");
  expect("plot rope --stretch bend*2", "plot rope: --stretch");
  expect("plot rope --heads 4", "not expected");
  expect("plot rope and-more", "not expected");
  expect("plot rope --format gif", "gif");
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "nothing is written for a wrong command line";
}

TEST_F(Command, ListsWhatItCanDraw) {
  const Outcome outcome = run("plot --list");
  EXPECT_EQ(outcome.status, 0);
  for (const PlottedMethod& method : plotted_methods()) {
    EXPECT_THAT(outcome.words, HasSubstr("\n  " + method.name + " "));
  }
#ifdef SEXTANT_HAS_LABORATORY
  EXPECT_THAT(outcome.words, AllOf(HasSubstr("\n  fire "), HasSubstr("\nnone: nothing to draw")));
#else
  EXPECT_THAT(outcome.words, HasSubstr("in a build with libtorch"));
#endif
}

#ifdef SEXTANT_HAS_LABORATORY
TEST_F(Command, DrawsAnyMethodByItsScoresOrItsInput) {
  const std::string small = " --length 8 --heads 2 --format svg --out .";
  EXPECT_EQ(run("plot chunk --options '{\"chunk\": 3, \"of\": \"none\"}'" + small).words,
            "./chunk-score.npy\n./chunk-score.svg\n./chunk-distance.csv\n./chunk-distance.svg\n");
  const Array scores = read_npy(folder_ / "chunk-score.npy");
  EXPECT_THAT(scores.shape, ElementsAre(8, 8));
  EXPECT_EQ(run("plot recursive --options '{\"cell\": 1}'" + small).status, 2);
  EXPECT_EQ(run("plot recursive" + small).status, 0);
  EXPECT_THAT(read_npy(folder_ / "recursive-vectors.npy").shape, ElementsAre(8, 64));
}
#endif

TEST_F(Command, SaysWhyItCannotWrite) {
  const Outcome outcome = run("plot rope --out /dev/null/x");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.words, HasSubstr("sextant: write /dev/null/x/rope-vectors.npy: cannot"));
}

}  // namespace
}  // namespace sextant::cli
