#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sextant/base/error.h"
#include "sextant/chart/chart.h"
#include "sextant/files/write_file.h"
#include "tests/chart/png_reader.h"
#include "tests/chart/samples.h"
#include "tests/chart/xml.h"
#include "tests/files/npy.h"

namespace sextant::chart {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sextant-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() override { std::filesystem::remove_all(path_); }

  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      out.push_back(entry.path().filename());
    }
    return out;
  }

  std::filesystem::path path_;
};

using Figure = Folder;

TEST_F(Figure, IsWrittenInEachFormat) {
  const std::vector<Format> formats = {Format::kSvg, Format::kCsv};
  const auto paths = write_figure(survey_chart(), path_ / "a" / "b.c", formats);
  EXPECT_THAT(paths, ElementsAre(path_ / "a" / "b.c.svg", path_ / "a" / "b.c.csv"));
  EXPECT_EQ(read(paths[0]), svg(survey_chart()));
  EXPECT_EQ(read(paths[1]), csv(survey_chart()));
}

TEST_F(Figure, PngHasTheSizeOfTheChart) {
  LineChart chart = survey_chart();
  if (std::system("rsvg-convert --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no rsvg-convert";
  const Picture once = read_png(png(chart, 1)), twice = read_png(png(chart));
  EXPECT_EQ(once.width, 760);
  EXPECT_EQ(once.height, 440);
  EXPECT_EQ(twice.width, 1520);
  EXPECT_EQ(twice.pixel(0, 0), (Pixel{255, 255, 255, 255})) << "paper";
  int64_t ink = 0;
  for (int64_t y = 0; y < twice.height; ++y) {
    for (int64_t x = 0; x < twice.width; ++x) ink += twice.pixel(x, y) != twice.pixel(0, 0);
  }
  EXPECT_GT(ink, 10'000);
  EXPECT_EQ(read_png(png(small_map(3, 4), 1)).width, 640);
}

TEST_F(Figure, PngWithoutItsProgramSaysWhatToInstall) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", path_.c_str(), 1);
  try {
    png(survey_chart());
    ADD_FAILURE() << "no complaint";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("librsvg2-bin"));
  }
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(Figure, AProgramThatFailsIsNotBelieved) {
  const std::string path = std::getenv("PATH");
  write_file(path_ / "rsvg-convert", "#!/bin/sh\necho 'out of ink' >&2\nexit 3\n");
  ::chmod((path_ / "rsvg-convert").c_str(), 0755);
  ::setenv("PATH", path_.c_str(), 1);
  try {
    png(survey_chart());
    ADD_FAILURE() << "no complaint";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("status 3: out of ink"));
  }
  ::setenv("PATH", path.c_str(), 1);
}

TEST(Csv, ReadsBackToTheSameNumbers) {
  LineChart chart;
  chart.series = {{.name = "a, \"b\"", .x = {1.0 / 3, 1e300}, .y = {-0.1, NAN}}};
  EXPECT_EQ(csv(chart),
            "series,x,y,low,high\n"
            "\"a, \"\"b\"\"\",0.3333333333333333,-0.1,,\n"
            "\"a, \"\"b\"\"\",1e+300,nan,,\n");
  HeatMap map = small_map(2, 2);
  map.columns.first = 10;
  map.columns.step = 5;
  EXPECT_EQ(csv(map), "row,column,value\n0,10,0\n0,15,1\n1,10,2\n1,15,nan\n");
}

Panels map_above_line() {
  HeatMap map = small_map(3, 3);
  map.title = "not shown";
  LineChart line = {.title = "not shown", .subtitle = "below", .x = {}, .y = {}, .series = {}};
  line.series = {{.name = "a line with a long name", .x = {0, 1}, .y = {1000000, 2000000}}};
  return {.title = "Two", .subtitle = "", .parts = {map, line}};
}

TEST(Panels, PartsLineUpOneBelowTheOther) {
  const Element drawing = parse_xml(svg(map_above_line()));
  const Element* image = drawing.all("image").at(0);
  const double left = std::stod(image->attribute("x"));
  const double right = left + std::stod(image->attribute("width"));
  const std::string grid = drawing.all("path", "grid").at(0)->attribute("d");
  EXPECT_NEAR(std::stod(grid.substr(1)), left, 0.02);
  EXPECT_NEAR(std::stod(grid.substr(grid.find('L') + 1)), right, 0.02);
  std::vector<std::string> words;
  for (const Element* text : drawing.all("text")) words.push_back(text->text);
  EXPECT_THAT(words, testing::IsSupersetOf({"Two", "below", "a line with a long name"}));
  EXPECT_THAT(words, testing::Not(testing::Contains("not shown")));
}

TEST(Panels, CsvHasTheDataOfAllParts) {
  Panels panels = map_above_line();
  panels.parts.push_back(panels.parts[1]);
  const std::string line = csv(std::get<LineChart>(panels.parts[1]));
  EXPECT_EQ(csv(panels), csv(std::get<HeatMap>(panels.parts[0])) + "\n" + line +
                             line.substr(line.find('\n') + 1));
}

TEST(Npy, HoldsTheMatrix) {
  HeatMap map = small_map(2, 3);
  map.values = {0.1, -1e300, 2, 3, 4, 5};
  const std::string bytes = npy(map);
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,3,), }";
  EXPECT_EQ(bytes.substr(0, 10 + header.size()), std::string("\x93NUMPY\1\0\x76\0", 10) + header);
  EXPECT_EQ(bytes.substr(10 + header.size(), 118 - header.size()),
            std::string(117 - header.size(), ' ') + "\n");
  const NpyMatrix matrix = parse_npy(bytes);
  EXPECT_THAT(matrix.shape, ElementsAre(2, 3));
  EXPECT_EQ(matrix.values, map.values);
}

TEST(Formats, AreThoseWithNames) {
  EXPECT_EQ(format("svg"), Format::kSvg);
  EXPECT_EQ(format("npy"), Format::kNpy);
  EXPECT_THROW(format("jpeg"), Error);
  const std::vector<Format> matrix = {Format::kNpy};
  EXPECT_THROW(write_figure(survey_chart(), "/nowhere/at/all", matrix), Error);
}

using WriteFile = Folder;

TEST_F(WriteFile, LeavesOneWholeFileAndNothingElse) {
  write_file(path_ / "deep" / "file", "one");
  write_file(path_ / "deep" / "file", std::string(1 << 20, 'x'));
  EXPECT_EQ(read(path_ / "deep" / "file"), std::string(1 << 20, 'x'));
  EXPECT_THAT(entries(), ElementsAre("deep"));
  int64_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_ / "deep"))
    ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(WriteFile, KeepsTheOldFileWhenItCannotWrite) {
  write_file(path_ / "folder" / "file", "old");
  EXPECT_THROW(write_file(path_ / "folder", "a folder stands here"), Error);
  EXPECT_THROW(write_file(path_ / "folder" / "file" / "below", "a file stands here"), Error);
  EXPECT_EQ(read(path_ / "folder" / "file"), "old");
  EXPECT_THAT(entries(), UnorderedElementsAre("folder"));
}

TEST_F(WriteFile, FilesAreForEverybodyTheUmaskAllows) {
  const mode_t before = ::umask(022);
  write_file(path_ / "file", "x");
  ::umask(before);
  struct ::stat status = {};
  ::stat((path_ / "file").c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0644U);
}

}  // namespace
}  // namespace sextant::chart
