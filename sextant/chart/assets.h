// The style sheets and the script of charts and reports, from the .css and .js files beside this
// one: the build copies their text into the library.
#pragma once

#include <string_view>

namespace sextant::chart {

std::string_view chart_css();       // every chart
std::string_view chart_dark_css();  // what a reader in dark mode sees instead
std::string_view report_css();
std::string_view report_js();

}  // namespace sextant::chart
