#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sextant/cli/plot/plotted.h"
#include "sextant/lab/plan/stretches.h"
#include "tests/files/npy.h"

namespace sextant::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Outcome {
  int status = 0;
  std::string words;  // standard output and error
};

class PlotCommand : public ::testing::Test {
 protected:
  PlotCommand() {
    std::string name = (std::filesystem::temp_directory_path() / "sextant-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~PlotCommand() override { std::filesystem::remove_all(folder_); }

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

TEST_F(PlotCommand, WritesPicturesAndTheirNumbersAndSaysWhere) {
  const Outcome outcome = run("plot rope --dim 8 --length 16 --as svg --out pictures/deep");
  EXPECT_EQ(outcome.status, 0) << outcome.words;
  EXPECT_EQ(outcome.words,
            "pictures/deep/rope-vectors.npy\npictures/deep/rope-vectors.svg\n"
            "pictures/deep/rope-score.npy\npictures/deep/rope-score.svg\n"
            "pictures/deep/rope-distance.csv\npictures/deep/rope-distance.svg\n"
            "pictures/deep/rope-terms.csv\npictures/deep/rope-terms.svg\n"
            "pictures/deep/rope-bound.csv\npictures/deep/rope-bound.svg\n"
            "pictures/deep/rope-pair.csv\npictures/deep/rope-pair.svg\n"
            "pictures/deep/rope-shift.csv\npictures/deep/rope-shift.svg\n");
  const NpyMatrix array = read_npy(folder_ / "pictures/deep/rope-vectors.npy");
  EXPECT_THAT(array.shape, ElementsAre(16, 8));
  EXPECT_GT(std::filesystem::file_size(folder_ / "pictures/deep/rope-distance.svg"), 1000U);
}

TEST_F(PlotCommand, WritesPngToo) {
  if (std::system("rsvg-convert --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no rsvg-convert";
  EXPECT_EQ(run("plot alibi --out .").status, 0);
  EXPECT_GT(std::filesystem::file_size(folder_ / "alibi-bias.png"), 1000U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "alibi-bias.svg"));
}

TEST_F(PlotCommand, SaysWhatIsWrongWithACommandLine) {
  const auto expect = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.words, HasSubstr(words)) << arguments;
  };
  expect("plot", "expected one of alibi, ");
  expect("plot foo", "but got foo");
  expect("plot learned", "its table is all training");
  expect("plot rope --dim x", "plot rope: --dim: expected an integer from 1 to 4096, but got x");
  expect("plot rope --dim 7", "expected an even number");
  expect("plot rope --stretch yarn", "plot rope: --stretch");
  expect("plot rope --stretch bend*2", "plot rope: --stretch");
  expect("plot rope --heads 4", "not expected");
  expect("plot dynamic-pi --factor 4", "not expected");
  expect("plot rope and-more", "not expected");
  expect("plot rope --as gif", "gif");
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "nothing is written for a wrong command line";
}

TEST_F(PlotCommand, PrintsAndWritesTheShareThatDistanceExplains) {
  const Outcome outcome = run("plot sinusoidal --length 16 --heads 2 --as svg --out .");
  EXPECT_EQ(outcome.status, 0) << outcome.words;
  EXPECT_THAT(outcome.words, HasSubstr("./sinusoidal-explained.csv\n"));
  EXPECT_THAT(outcome.words, HasSubstr("that distance explains\n"));
  EXPECT_THAT(outcome.words, HasSubstr("  no W                      1.0000      1.0000\n"));
  std::ifstream file(folder_ / "sinusoidal-explained.csv");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "name,past,all");
  std::getline(file, line);
  EXPECT_THAT(line, ::testing::StartsWith("\"no W\","));
}

TEST_F(PlotCommand, MethodsOwnOptionsAreThoseOfThePlot) {
  const auto bias = [&](const std::string& arguments, const std::string& label) {
    const Outcome outcome = run("plot " + arguments + " --length 8 --as svg --out .");
    EXPECT_EQ(outcome.status, 0) << outcome.words;
    const std::filesystem::path file = folder_ / (label + "-bias.npy");
    const NpyMatrix drawn = read_npy(file);
    std::filesystem::remove(file);
    return drawn.values;
  };
  const auto typed = bias("alibi --max-bias 4 --direction both --future-scale 2", "alibi");
  const std::string own = "alibi-future_scale=2-max_bias=4";
  EXPECT_EQ(bias("alibi:max_bias=4:future_scale=2 --direction both", own), typed);
  EXPECT_EQ(bias("alibi --direction both --options '{\"max_bias\": 4, \"future_scale\": 2}'", own),
            typed);
  EXPECT_EQ(bias("alibi:max_bias=4 --direction both --options '{\"future_scale\": 2}'", own),
            typed);
  EXPECT_EQ(run("plot clock:periods=[4,6] --length 8 --out . --as svg").status, 0);
  EXPECT_EQ(run("plot t5:bidirectional=true --length 8 --out . --as svg").status, 0);
  EXPECT_EQ(run("plot binary:levels=0/1 --length 8 --out . --as svg").status, 0);
  EXPECT_EQ(run("plot rope:stretch=pi*2:dim=null --length 8 --out . --as svg").status, 0);
}

TEST_F(PlotCommand, SaysWhatIsWrongWithTheMethodsOwnOptions) {
  const auto expect = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run("plot " + arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.words, HasSubstr(words)) << arguments;
  };
  expect("alibi --options 3", "plot alibi: --options: expected a JSON object, but got 3");
  expect("alibi:max_bias", "plot: alibi:max_bias: expected NAME:OPTION=VALUE, but got max_bias");
  expect("alibi:max_bias=2:max_bias=3",
         "plot: alibi:max_bias=2:max_bias=3: max_bias: expected it once, but got 2 and 3");
  expect("alibi:max_bias=4 --max-bias 8", "--max-bias: expected it once, but got 8");
  expect("alibi:max_bias=4 --options '{\"max_bias\": 4}'", "max_bias: expected it once");
  expect("alibi:max_bias=steep", "plot alibi: max_bias: expected a number, but got \"steep\"");
  expect("alibi:future_scale=2", "plot alibi: --future-scale: expected 1 without --direction both");
  expect("yarn:sense=clockwise", "plot yarn: options: expected any of dim, base, pairing, but got");
  expect("foo:bar=2", "but got foo");
#ifdef SEXTANT_HAS_LABORATORY
  expect("alibi:steep=1", "alibi: options: expected any of flavour, future_scale, interpolation");
  expect("rope:sens=1", "rope: options: expected any of axes, base, columns");
  expect("alibi:flavour=falcon --max-bias 4",
         "--max-bias: expected none beside the option flavour, with which the method is drawn");
#else
  expect("alibi:flavour=falcon", "expected any of max_bias, future_scale (others take a build");
#endif
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "nothing is written for a wrong command line";
}

// As the methods themselves do: the plot's spellings and defaults are not theirs.
TEST_F(PlotCommand, RefusesValuesThatTheMethodDoes) {
  const auto expect = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run("plot " + arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.words, HasSubstr("plot " + words + "\n")) << arguments;
  };
  expect("alibi:max_bias=null", "alibi: max_bias: expected a number, but got null");
  expect("alibi --options '{\"max_bias\": \"8\"}'",
         "alibi: max_bias: expected a number, but got \"8\"");
  expect("shaw:clip=[2]", "shaw: clip: expected a number, but got [2]");
  expect("t5:bidirectional=both",
         "t5: bidirectional: expected one of true, false, null, but got \"both\"");
  expect("t5 --options '{\"bidirectional\": \"true\"}'",
         "t5: bidirectional: expected one of true, false, null, but got \"true\"");
  expect("binary:levels=0,1", "binary: levels: expected one of \"-1/1\", \"0/1\", but got \"0,1\"");
  expect("clock:periods=4,6", "clock: periods: expected a list of numbers, but got \"4,6\"");
  expect("clock:periods=4", "clock: periods: expected a list of numbers, but got 4");
  expect("clock --options '{\"periods\": [4, \"6\"]}'",
         "clock: periods: expected a list of numbers, but got [4,\"6\"]");
  expect("clock:system=mars",
         "clock: system: expected one of \"earth\", \"alien\", but got \"mars\"");
  expect("sinusoidal:layout=3", "sinusoidal: layout: expected a string, but got 3");
  expect("rope:dim=all", "rope: dim: expected a number or null, but got \"all\"");
  expect("rope:base=null", "rope: base: expected a number, but got null");
  expect("rope:pairing=null",
         "rope: pairing: expected one of \"half-split\", \"interleaved\", but got null");
  const std::string stretch =
      "rope: stretch: expected a short form as yarn*8 or an object as of rope_scaling or null, but "
      "got ";
  expect("rope:stretch=none", stretch + "\"none\"");
  expect("rope:stretch=2", stretch + "2");
  expect("rope --options '{\"stretch\": \"{}\"}'", stretch + "\"{}\"");
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "nothing is written for a wrong command line";
}

TEST_F(PlotCommand, NullStandsForThePlotsDefaultWhereTheMethodAcceptsIt) {
  for (const char* plot :
       {"window:window=null", "t5:bidirectional=null", "rope:dim=null", "rope:stretch=null"}) {
    const std::string method = std::string(plot).substr(0, std::string(plot).find(':'));
    const auto drawn = [&](const std::string& name) {
      const Outcome outcome = run("plot " + name + " --length 8 --as svg --out .");
      EXPECT_EQ(outcome.status, 0) << outcome.words;
      std::string label = name;
      std::ranges::replace(label, ':', '-');
      std::ifstream file(folder_ / (label + "-distance.csv"));
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const std::string before = drawn(method);
    EXPECT_GT(before.size(), 70U);
    EXPECT_EQ(drawn(plot), before) << plot;
  }
}

TEST_F(PlotCommand, NamesFilesByTheMethodsOwnOptions) {
  const auto drawn = [&](const std::string& arguments) {
    const Outcome outcome = run("plot " + arguments + " --length 4 --as svg --out .");
    EXPECT_EQ(outcome.status, 0) << outcome.words;
    return outcome.words.substr(0, outcome.words.find('\n'));
  };
  EXPECT_EQ(drawn("binary"), "./binary-vectors.npy");
  EXPECT_EQ(drawn("binary:levels=0/1:bits=3"), "./binary-bits=3-levels=0_1-vectors.npy");
  EXPECT_EQ(drawn("binary:bits=3 --options '{\"levels\": \"-1/1\"}'"),
            "./binary-bits=3-levels=-1_1-vectors.npy");
  EXPECT_THAT(read_npy(folder_ / "binary-vectors.npy").shape, ElementsAre(4, 16));
  EXPECT_THAT(read_npy(folder_ / "binary-bits=3-levels=0_1-vectors.npy").shape, ElementsAre(4, 3));
  EXPECT_EQ(drawn("rope:stretch=yarn*8"), "./rope-stretch=yarn_8-vectors.npy");
  EXPECT_EQ(drawn("rope --options '{\"stretch\": {\"rope_type\": \"pi\", \"factor\": 2}}'"),
            "./rope-stretch=factor_2,_rope_type_pi-vectors.npy");
  EXPECT_EQ(drawn("clock:system=alien:hands=2"), "./clock-hands=2-system=alien-vectors.npy");
  EXPECT_THAT(read_npy(folder_ / "clock-hands=2-system=alien-vectors.npy").shape,
              ElementsAre(4, 4));
  // Long labels are cut; the hash keeps them apart.
  std::string periods = "[2";
  for (int n = 0; n < 60; ++n) periods += ",1000";
  const std::string one = drawn("clock:periods=" + periods + "]");
  const std::string other = drawn("clock:periods=" + periods + ",3]");
  EXPECT_NE(one, other);
  EXPECT_THAT(one, ::testing::MatchesRegex("./clock-periods=2,1000,.*-[0-9a-f]*-vectors.npy"));
  EXPECT_LT(one.size(), 160U);
}

TEST_F(PlotCommand, ListsWhatItCanDraw) {
  const Outcome outcome = run("plot --list");
  EXPECT_EQ(outcome.status, 0);
  for (const PlottedMethod& method : plotted_methods()) {
    EXPECT_THAT(outcome.words, HasSubstr("\n  " + method.name + " "));
  }
#ifdef SEXTANT_HAS_LABORATORY
  EXPECT_THAT(outcome.words,
              AllOf(HasSubstr("\n  fire "), HasSubstr("\nlearned: nothing to draw")));
#else
  EXPECT_THAT(outcome.words, HasSubstr("in a build with libtorch"));
#endif
}

#ifdef SEXTANT_HAS_LABORATORY
TEST_F(PlotCommand, DrawsAnyMethodByItsScoresOrItsInput) {
  const std::string small = " --length 8 --heads 2 --as svg --out .";
  EXPECT_EQ(run("plot chunk --options '{\"chunk\": 3, \"of\": \"none\"}'" + small).words,
            "./chunk-chunk=3-of=none-score.npy\n./chunk-chunk=3-of=none-score.svg\n"
            "./chunk-chunk=3-of=none-distance.csv\n./chunk-chunk=3-of=none-distance.svg\n");
  const NpyMatrix scores = read_npy(folder_ / "chunk-chunk=3-of=none-score.npy");
  EXPECT_THAT(scores.shape, ElementsAre(8, 8));
  EXPECT_EQ(run("plot recursive --options '{\"cell\": 1}'" + small).status, 2);
  EXPECT_EQ(run("plot recursive" + small).status, 0);
  EXPECT_THAT(read_npy(folder_ / "recursive-vectors.npy").shape, ElementsAre(8, 64));
  EXPECT_THAT(read_npy(folder_ / "recursive-random-w.npy").shape, ElementsAre(8, 8));
  EXPECT_EQ(run("plot alibi:flavour=falcon" + small).words,
            "./alibi-flavour=falcon-score.npy\n./alibi-flavour=falcon-score.svg\n"
            "./alibi-flavour=falcon-distance.csv\n./alibi-flavour=falcon-distance.svg\n")
      << "drawn by its scores, as the formula's figures do not show the option";
  EXPECT_EQ(run("plot chunk:chunk=3:of=none" + small).words,
            run("plot chunk --options '{\"chunk\": 3, \"of\": \"none\"}'" + small).words);
}
#endif

#ifdef SEXTANT_HAS_LABORATORY
TEST_F(PlotCommand, DrawsMethodsOnAGridByBothDistances) {
  EXPECT_EQ(run("plot alibi-2d --side 3 --heads 8 --as svg --out .").words,
            "./alibi-2d-grid.npy\n./alibi-2d-grid.svg\n");
  const NpyMatrix map = read_npy(folder_ / "alibi-2d-grid.npy");
  EXPECT_THAT(map.shape, ElementsAre(5, 5));
  for (int y = -2; y <= 2; ++y) {
    for (int x = -2; x <= 2; ++x) {
      EXPECT_NEAR(map.values.at(static_cast<size_t>((y + 2) * 5 + x + 2)), -std::hypot(y, x) / 2,
                  1e-12);
    }
  }
  for (const std::string method : {"beit", "layoutlm", "sam", "swin", "swin:continuous=true"}) {
    EXPECT_EQ(run("plot " + method + " --side 3 --as svg --out .").status, 0) << method;
  }
  // A sum over the axes: all its rows differ by constants, which are not 0.
  const std::vector<double> sam = read_npy(folder_ / "sam-grid.npy").values;
  EXPECT_GT(std::abs(sam[5] - sam[0]), 1e-6);
  for (size_t x = 0; x < 5; ++x) EXPECT_NEAR(sam[5 + x] - sam[x], sam[5] - sam[0], 1e-12);
  EXPECT_THAT(run("plot sam --options '{\"grid\": [3, 4]}'").words,
              HasSubstr("as --side, but got"));
}
#endif

#ifdef SEXTANT_HAS_LABORATORY
// A score of one vector with itself is that of rope at the position used. `stretches` draws methods
// for 64 trained positions; the plug-in takes --length as trained, so these are options here.
TEST_F(PlotCommand, PositionsUsedAreThoseOfTheMethods) {
  constexpr size_t kLength = 112;
  const auto scores = [&](const std::string& method) {  // of the last query, by distance
    const Outcome outcome = run("plot " + method + " --length 112 --as svg --out . | head -1");
    const std::string file = outcome.words.substr(0, outcome.words.find('\n'));
    std::vector<double> row = read_npy(folder_ / file).values;
    row.erase(row.begin(), row.end() - kLength);
    std::ranges::reverse(row);
    return row;
  };
  const auto chart = std::get<chart::LineChart>(
      figures_of("stretches", {{"train-length", "64"}, {"length", "112"}}).at(1).chart);
  const std::vector<double> rope = scores("rope:columns=first");
  const std::vector<std::pair<size_t, std::string>> methods = {
      {2, "rerope:window=32"},
      {3, "leaky-rerope:window=32:factor=2.5"},
      {4, "self-extend:window=16:group=2"},
      {5, "dual-chunk:chunk_size=48:local_window=8"}};
  for (const auto& [series, method] : methods) {
    const std::vector<double> drawn = scores(method);
    size_t compared = 0;
    for (size_t d = 0; d < kLength; ++d) {
      const double used = chart.series.at(series).y.at(d);
      if (std::abs(used - std::round(used)) > 1e-9) continue;  // leaky-rerope has fractions
      EXPECT_NEAR(drawn[d], rope.at(static_cast<size_t>(std::round(used))), 1e-9) << method << d;
      ++compared;
    }
    EXPECT_GT(compared, 40U) << method;
  }
  // The defaults of the methods; leaky-rerope reads its window as rerope does.
  EXPECT_EQ(scores("rerope"),
            scores("rerope:window=" + std::to_string(lab::default_window("rerope", kLength))));
  EXPECT_EQ(
      scores("self-extend"),
      scores("self-extend:window=" + std::to_string(lab::default_window("self-extend", kLength))));
  const lab::ChunkSizes sizes = lab::default_chunks(kLength);
  EXPECT_EQ(scores("dual-chunk"), scores("dual-chunk:chunk_size=" + std::to_string(sizes.size) +
                                         ":local_window=" + std::to_string(sizes.local)));
}
#endif

TEST_F(PlotCommand, SaysWhyItCannotWrite) {
  const Outcome outcome = run("plot rope --out /dev/null/x");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.words, HasSubstr("sextant: write /dev/null/x/rope-vectors.npy: cannot"));
}

}  // namespace
}  // namespace sextant::cli
