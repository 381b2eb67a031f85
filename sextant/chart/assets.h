// The style sheets and the script of charts and reports, from the .css and .js files in this
// folder; the build embeds their text in the library.
#pragma once

#include <string_view>

namespace sextant::chart {

std::string_view chart_css();       // every chart
std::string_view chart_dark_css();  // overrides for dark mode
std::string_view report_css();
std::string_view report_js();

}  // namespace sextant::chart
