// Opens the report of a survey in a real browser: its script runs to the end without errors, and
// every chart exists and reacts to the pointer. tests/chart/report_test.cc tests the details of a
// report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sextant/lab/report/report.h"
#include "tests/chart/browser.h"
#include "tests/lab/arm_results.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::Not;

// Writes into the page's title, for each chart: its title, its number of lines, whether they are
// visible, and the number of values at the pointer.
constexpr const char* kReader = R"(<script>
const said = [];
for (const figure of document.querySelectorAll('figure')) {
  const stage = figure.querySelector('.stage.wide');
  const box = stage.querySelector('svg').getBoundingClientRect();
  stage.dispatchEvent(new PointerEvent('pointermove',
    { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
  const tip = figure.querySelector('.tip');
  const paths = [...stage.querySelectorAll('g.series path')];
  said.push([figure.querySelector('figcaption').firstChild.textContent,
    figure.querySelectorAll('.legend button[data-series]').length,
    paths.filter((path) => path.getTotalLength() > 20).length >= 2,
    tip.hidden ? 0 : tip.querySelectorAll('tr').length].join('|'));
}
document.title = 'tables ' + document.querySelectorAll('table.sortable').length + ';' +)"
                                R"( said.join(';') + ';';
</script>)";

TEST(ReportInABrowser, RunsWithoutErrorsAndAnswers) {
  if (chart::browser().empty()) GTEST_SKIP() << "no chromium here";
  const TemporaryFolder folder;
  const std::vector<ArmResult> results{arm_result("rope", 0, 1),
                                       pair_result("rope", 0, 1, 0.1),
                                       arm_result("rope", 1, 1.2),
                                       pair_result("rope", 1, 0.9, 0.2),
                                       arm_result("t5", 0, 0.02),
                                       pair_result("t5", 0, 1, 0.8),
                                       arm_result("t5", 1, 0.01),
                                       pair_result("t5", 1, 1, 0.7),
                                       reading(arm_result("ntk", 0, 0.5), "rope"),
                                       reading(pair_result("ntk", 0, 1, 0.5), "rope")};
  const Settings settings = settings_of_results();
  write_results(folder.path(), {{"settings", settings}}, findings_of(results, settings),
                "sextant survey");
  std::string page = read_text(folder / "report.html");
  page.insert(page.find("</body>"), kReader);
  const std::string seen = chart::opened(page);
  ASSERT_THAT(seen, HasSubstr("</html>")) << "the browser did not open it";
  EXPECT_THAT(seen, HasSubstr("class=\"interactive\"")) << "the report's own script did not end";
  EXPECT_THAT(seen, Not(HasSubstr("CONSOLE"))) << "errors and refused requests are said there";
  EXPECT_THAT(seen, HasSubstr("<title>tables 4;"));
  for (const char* chart :
       {"Loss of the last 16 bytes by length", "Loss by length, all bytes", "Loss by position",
        "Retrieval by distance in texts of 32 tokens",
        "Retrieval at the beginning of texts, by length", "Training",
        "Stretches: Loss of the last 16 bytes by length", "Stretches: loss by position",
        "Stretches: Retrieval by distance in texts of 32 tokens"}) {
    EXPECT_THAT(seen, HasSubstr(std::string(";") + chart + "|2|true|2;")) << chart;
  }
}

TEST(ReportInABrowser, SavesTheFilesThatStandBesideIt) {
  if (chart::browser().empty()) GTEST_SKIP() << "no chromium here";
  const TemporaryFolder folder;
  const std::vector<ArmResult> results{arm_result("rope", 0, 1), arm_result("t5", 0, 0.02)};
  const Settings settings = settings_of_results();
  write_results(folder.path(), {{"settings", settings}}, findings_of(results, settings),
                "sextant survey");
  const auto saved = chart::saved_by_clicks(read_text(folder / "report.html"), "a.download", 3);
  ASSERT_EQ(saved.size(), 3);
  for (const auto& [name, bytes] : saved) {
    ASSERT_FALSE(bytes.empty()) << name;
    EXPECT_EQ(bytes, read_text(folder / name)) << name;
  }
  // The saved chart equals the figure in the survey's folder.
  const auto drawn =
      chart::saved_by_clicks(read_text(folder / "report.html"), "#answer figure .links a", 2);
  ASSERT_EQ(drawn.size(), 2);
  EXPECT_EQ(drawn.at("loss-of-the-last-16-bytes-by-length.svg"),
            read_text(folder / "sliding-by-length.svg"));
  EXPECT_THAT(drawn.at("loss-of-the-last-16-bytes-by-length.csv"), testing::StartsWith("series,x"));
}

}  // namespace
}  // namespace sextant::lab
