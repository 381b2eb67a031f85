#include "sextant/chart/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/chart/png_reader.h"
#include "tests/chart/xml.h"

namespace sextant::chart {
namespace {

TEST(Pretty, WritesNumbersAsPeopleDo) {
  EXPECT_EQ(pretty(0), "0");
  EXPECT_EQ(pretty(-0.0), "0");
  EXPECT_EQ(pretty(1.5), "1.5");
  EXPECT_EQ(pretty(-2), "−2");
  EXPECT_EQ(pretty(1024), "1024");
  EXPECT_EQ(pretty(65536), "65\u2009536");
  EXPECT_EQ(pretty(1.0 / 3), "0.33333");
  EXPECT_EQ(pretty(123456.7), "123\u2009457");
  EXPECT_EQ(pretty(2.5e-5), "2.5×10⁻⁵");
  EXPECT_EQ(pretty(-1e12), "−1×10¹²");
  EXPECT_EQ(pretty(9999999), "1×10⁷") << "five digits of it";
  EXPECT_EQ(pretty(std::nan("")), "–");
  EXPECT_EQ(pretty(-INFINITY), "−∞");
  EXPECT_EQ(pretty_fixed(1.38, 3), "1.380");
  EXPECT_EQ(pretty_fixed(-0.0001, 2), "0.00");
  EXPECT_EQ(pretty_fixed(12345.5, 1), "12\u2009345.5");
}

RC_GTEST_PROP(Escape, MakesAnyBytesXmlTextAndAttributes, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  const std::string safe = escape(bytes);
  const Element element = parse_xml("<a b=\"" + safe + "\">" + safe + "</a>");
  RC_ASSERT(element.children.empty());
  RC_ASSERT(element.attributes.size() == 1U);
}

TEST(Escape, LeavesGoodTextAlone) {
  const std::string words = "1 < 2 & \"三\" > 'x'";
  EXPECT_EQ(parse_xml("<a>" + escape(words) + "</a>").text, words);
}

RC_GTEST_PROP(Base64, IsReadBackAsItWas, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  RC_ASSERT(unbase64(base64(bytes)) == bytes);
}

TEST(Base64, AgreesWithRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

RC_GTEST_PROP(Shortened, FitsAndIsAStartOfTheText, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::inRange('!', '~'));
  const double width = *rc::gen::inRange(20, 400);
  const std::string out = shortened(text, 12, width);
  RC_ASSERT(text_width(out, 12) <= width);
  const bool whole = out == text;
  const std::string ellipsis = "…";
  RC_ASSERT(whole || (out.ends_with(ellipsis) &&
                      text.starts_with(out.substr(0, out.size() - ellipsis.size()))));
}

TEST(Shortened, FitsWhereItsWidthIsAllThereIs) {
  const std::string out = shortened(",0BG!(G0!&<0E<", 12, 105);
  EXPECT_LE(text_width(out, 12), 105);
  EXPECT_GT(text_width(out, 12), 104.99);
}

TEST(Pixels, AreRoundedAndShort) {
  EXPECT_EQ(pixels(1), "1");
  EXPECT_EQ(pixels(-0.001), "0");
  EXPECT_EQ(pixels(1.005 + 1e-9), "1.01");
  EXPECT_EQ(pixels(100), "100");
}

}  // namespace
}  // namespace sextant::chart
