// Parts of a report by name.
#include <algorithm>
#include <type_traits>

#include "sextant/base/error.h"
#include "sextant/chart/report.h"
#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

struct Part {
  std::string name;
  Section section;  // without a heading
};

std::vector<Part> parts_of(const Report& report) {
  std::vector<Part> parts{{"answer", {"", {Prose{report.lead}}}}};
  std::ranges::copy(report.opening.blocks, std::back_inserter(parts.front().section.blocks));
  const auto add = [&](const Section& section) {
    if (!section.heading.empty()) parts.push_back({slug(section.heading), {"", section.blocks}});
    for (const ReportBlock& block : section.blocks) {
      if (!name_of(block).empty()) parts.push_back({name_of(block), {"", {block}}});
    }
  };
  add(report.opening);
  std::ranges::for_each(report.sections, add);
  return parts;
}

}  // namespace

std::string name_of(const ReportBlock& block) {
  const auto of = [](const auto& one) -> std::string {
    using Kind = std::decay_t<decltype(one)>;
    if constexpr (std::is_same_v<Kind, Details>) {
      return slug(one.summary);
    } else if constexpr (std::is_same_v<Kind, Table>) {
      return one.name.empty() ? slug(one.caption) : one.name;
    } else if constexpr (std::is_same_v<Kind, LineChart> || std::is_same_v<Kind, HeatMap>) {
      return one.name.empty() ? slug(one.title) : one.name;
    } else {
      return "";
    }
  };
  return std::visit(of, block);
}

Report only_parts(const Report& report, const std::vector<std::string>& names) {
  const std::vector<Part> parts = parts_of(report);
  Report out;
  for (const std::string& name : names) {
    const auto part = std::ranges::find(parts, name, &Part::name);
    if (part != parts.end()) {
      out.sections.push_back(part->section);
      continue;
    }
    std::string known;
    for (const Part& one : parts) known += " " + one.name;
    fail("report: --part: expected one of" + known + ", but got " + name);
  }
  return out;
}

}  // namespace sextant::chart
