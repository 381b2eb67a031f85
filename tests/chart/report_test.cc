#include "sextant/chart/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sextant/base/error.h"
#include "tests/chart/browser.h"
#include "tests/chart/png_reader.h"
#include "tests/chart/samples.h"
#include "tests/files/gunzip.h"

namespace sextant::chart {
namespace {

using testing::HasSubstr;
using testing::Not;

Report sample() {
  Report report;
  report.title = "Report <1> & \"more\"";
  report.lead =
      "Words in **bold**, `code <b>`, 2 * 3 ** 4 and <i>no HTML</i>.\n\nAnother paragraph:\n- "
      "one\n- two";
  Table table = {.caption = "Loss & length",
                 .columns = {{"Method", ""}, {"128", "nats"}},
                 .rows = {{words("rope"), number(1.461, 3)},
                          {words("alibi"), number(1.585, 3, Tone::kBad)},
                          {words("t5"), number(1.392, 3, Tone::kGood)},
                          {words("none"), number(std::nan(""), 3)}}};
  report.sections = {{"Results", {table, survey_chart(), crowded_chart()}},
                     {"Maps", {small_map(20, 30)}},
                     {"Rest",
                      {NamedValues{{{"seed", "1"}, {"text </dl>", "a<b"}}},
                       Download{"a.csv", "text/csv", "a,b\n1,2\n"}}}};
  report.footer = "The end.";
  return report;
}

// The strings between each `before` and the next `after`.
std::vector<std::string> between(const std::string& text, const std::string& before,
                                 const std::string& after) {
  std::vector<std::string> out;
  for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    const size_t end = text.find(after, at);
    out.push_back(text.substr(at, end - at));
  }
  return out;
}

TEST(Report, ProseHasItsMarksAndNothingElseIsHtml) {
  const std::string page = html(sample());
  EXPECT_THAT(
      page,
      HasSubstr("<p>Words in <strong>bold</strong>, <code>code &lt;b&gt;</code>, 2 * 3 ** 4 and "
                "&lt;i&gt;no HTML&lt;/i&gt;.</p>"));
  EXPECT_THAT(page, HasSubstr("<p>Another paragraph:</p>\n<ul><li>one</li><li>two</li></ul>"));
  EXPECT_THAT(page, HasSubstr("<title>Report &lt;1&gt; &amp; &quot;more&quot;</title>"));
}

TEST(Report, AsksForNothingOutsideItself) {
  const std::string page = html(sample());
  for (const char* attribute : {"href=\"", "src=\""}) {
    for (const std::string& url : between(page, attribute, "\"")) {
      EXPECT_TRUE(url.starts_with("#") || url.starts_with("data:")) << url.substr(0, 80);
    }
  }
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(Report, DownloadsAreInsideIt) {
  const auto urls = between(html(sample()),
                            "download=\"a.csv.gz\" data-type=\"text/csv\" "
                            "href=\"data:application/gzip;base64,",
                            "\"");
  ASSERT_EQ(urls.size(), 1U);
  EXPECT_EQ(gunzip(unbase64(urls[0])), "a,b\n1,2\n");
}

TEST(Report, NamesCannotEndItsScripts) {
  const std::string page = html(sample());
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  for (const std::string& data : between(page, "<script type=\"application/json\">", "<")) {
    EXPECT_TRUE(data.ends_with("}")) << data.substr(0, 80);
  }
}

TEST(Report, RowsMustBeAsLongAsTheHeading) {
  Report report;
  report.sections = {{"", {Table{.caption = "short", .columns = {{"a", ""}}, .rows = {{}}}}}};
  EXPECT_THROW(html(report), Error);
}

TEST(Report, OpensWithStatusAnswerAndBlocksBeforeItsLinks) {
  Report report = sample();
  report.status = "2 of <3> arms";
  report.opening.blocks = {Prose{"The opening."}, Details{"More", "- one\n- **two**"}};
  const std::string page = html(report);
  std::vector<size_t> places;
  for (const std::string& words :
       {status_html(report.status), std::string("<h1>"), std::string("<div class=\"lead\">"),
        std::string("The opening."), std::string("<summary>More</summary>"), std::string("<nav>"),
        std::string("<h2>Results</h2>")}) {
    places.push_back(page.find(words));
    EXPECT_NE(places.back(), std::string::npos) << words;
  }
  EXPECT_THAT(page, HasSubstr("2 of &lt;3&gt; arms"));
  EXPECT_THAT(page, HasSubstr("<li>one</li><li><strong>two</strong></li>"));
  EXPECT_TRUE(std::ranges::is_sorted(places));
  EXPECT_THAT(html(sample()), Not(HasSubstr("class=\"status\"")));
}

TEST(Report, CellsCarryTheNamesOfTheirColumnsAndNotes) {
  Table table{.columns = {{"claim", ""}, {"source", ""}},
              .rows = {{words("A <holds>"), words("B 2022")}}};
  table.rows[0][0].note = "change & more";
  table.stacks = true;
  Report report;
  report.sections = {{"", {table}}};
  const std::string page = html(report);
  EXPECT_THAT(page, HasSubstr("class=\"sortable stack\""));
  EXPECT_THAT(page, HasSubstr("data-label=\"source\">B 2022</td>"));
  EXPECT_THAT(page, HasSubstr(">A &lt;holds&gt;<small>change &amp; more</small></td>"));
}

TEST(Report, DoesNotCarryTheNumbersOfAHugeMap) {
  Report report;
  report.sections = {{"", {small_map(1000, 1000)}}};
  EXPECT_LT(html(report).size(), 3'000'000U);
}

TEST(Report, AnEmptyOneIsAPage) { EXPECT_THAT(html({}), HasSubstr("</html>")); }

// Uses the page as a user would and writes the results into its title.
constexpr const char* kReader = R"(<script>
const said = [];
const say = (name, value) => said.push(name + '=' + value);
const rows = () => [...document.querySelectorAll('tbody tr')])"
                                R"(.map((row) => row.cells[0].textContent).join();
const head = document.querySelectorAll('th button');
head[1].click(); say('up', rows());
head[1].click(); say('down', rows());
head[0].click(); say('names', rows());
const figure = document.querySelector('figure');
const hidden = () => figure.querySelectorAll('.wide g.series.off').length;
const buttons = figure.querySelectorAll('.legend button[data-series]');
buttons[3].click(); say('off', hidden());
buttons[3].click(); say('on', hidden());
buttons[3].dispatchEvent(new MouseEvent('click', { shiftKey: true })); say('alone', hidden());
figure.querySelector('.legend .all').click(); say('all', hidden());
const point = (stage, u, v) => {
  const [left, top, width, height] = stage.dataset.plot.split(' ').map(Number);
  const svg = stage.querySelector('svg'), box = svg.getBoundingClientRect();
  const scale = box.width / svg.viewBox.baseVal.width;
  const at = { clientX: box.left + scale * (left + u * width),)"
                                R"( clientY: box.top + scale * (top + v * height) };
  stage.dispatchEvent(new PointerEvent('pointermove', at));
  const tip = stage.closest('figure').querySelector('.tip');
  return tip.hidden ? 'nothing' : tip.textContent;
};
const stages = [...document.querySelectorAll('.stage.wide')];
say('line', point(stages[0], 0.99, 0.5));
say('outside', point(stages[0], 0.5, 1.5));
say('cell', point(stages[2], 0.5 / 30, 1.5 / 20));
const scroll = document.querySelector('.scroll');
const cut = () => scroll.classList.contains('cut') + ',' + scroll.nextSibling.checkVisibility();
say('wide', cut());
scroll.style.width = '40px';
dispatchEvent(new Event('resize'));
say('narrow', cut());
document.title = said.join(';') + ';';
</script>)";

TEST(Report, WorksInABrowser) {
  if (browser().empty()) GTEST_SKIP() << "no chromium here";
  std::string page = html(sample());
  page.insert(page.find("</body>"), kReader);
  const std::string seen = opened(page);
  ASSERT_THAT(seen, HasSubstr("</html>")) << "the browser did not open it";
  EXPECT_THAT(seen, HasSubstr("class=\"interactive\"")) << "the report's own script did not end";
  EXPECT_THAT(seen, Not(HasSubstr("CONSOLE"))) << "errors and refused requests are said there";
  const std::string title = between(seen, "<title>", "</title>").at(0);
  EXPECT_THAT(title, HasSubstr("up=t5,rope,alibi,none;"));
  EXPECT_THAT(title, HasSubstr("down=alibi,rope,t5,none;"));
  EXPECT_THAT(title, HasSubstr("names=alibi,none,rope,t5;"));
  EXPECT_THAT(title, HasSubstr("off=3;on=0;alone=21;all=0;")) << "groups: band, line and label";
  EXPECT_THAT(title, HasSubstr("line=length of the text (bytes): 1024rope2.886sinusoidal2.851"));
  EXPECT_THAT(title, HasSubstr("outside=nothing;"));
  EXPECT_THAT(title, HasSubstr("wide=false,false;narrow=true,true;")) << "a cut table says so";
  EXPECT_THAT(title, HasSubstr("cell=amount (units): 30row1column0"));
}

}  // namespace
}  // namespace sextant::chart
