// Vision parts of two files are held against each other by their place in the file; of one file
// their warnings are told.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/rope_config/compare_configs.h"

namespace sextant {
namespace {

std::string name_of(const VisionPart& part) {
  return "vision" + (part.place.empty() ? "" : ": " + part.place);
}

std::string words(const VisionPart& part, const std::string& field) {
  std::string all;
  if (field == "rotation") {
    return part.rotates ? "rotates" : "does not rotate: " + part.instead;
  } else if (field == "axes") {
    for (size_t a = 0; a < part.axes.size(); ++a)
      all +=
          (a == 0 ? "" : ", ") + part.axes[a] + " " + std::to_string(part.sections[a]) + " pairs";
    return all + (part.order == "one" ? "" : " (" + part.order + ")");
  } else if (field == "pairing") {
    return part.pairing;
  } else if (field == "rotated channels") {
    return std::to_string(part.rotary_dim) + " of " + std::to_string(part.head_dim);
  } else if (field == "base") {
    return nlohmann::json(part.base).dump();
  } else if (field == "coordinates") {
    return coordinates_of(part);
  } else if (field == "grid") {
    return part.grid ? std::to_string((*part.grid)[0]) + " x " + std::to_string((*part.grid)[1])
                     : "any";
  }
  all = windows_of(part);
  return all.empty() ? "none" : all;
}

void compare(const VisionPart& own, const VisionPart& other, ConfigComparison& to) {
  const auto find = [&](const std::string& field) {
    const std::string a = words(own, field), b = words(other, field);
    if (a == b) return true;
    to.findings.push_back({{}, name_of(own), field, a, b, "", false});
    return false;
  };
  if (!own.judged || !other.judged) {
    const VisionPart& part = own.judged ? other : own;
    add_unjudged(to, name_of(part), part.instead, {});
    return;
  }
  if (!find("rotation") || !own.rotates) return;
  for (const char* field :
       {"axes", "pairing", "rotated channels", "base", "coordinates", "grid", "windows"})
    find(field);
}

const VisionPart* at(const std::vector<VisionPart>& parts, const std::string& place) {
  const auto found = std::ranges::find(parts, place, &VisionPart::place);
  return found == parts.end() ? nullptr : &*found;
}

}  // namespace

void compare_vision(const ReadRopeConfig& a, const ReadRopeConfig& b, ConfigComparison& to) {
  if (a.dialect != b.dialect) return;  // GGUF and flags have no vision parts
  for (const VisionPart& own : a.vision) {
    if (const VisionPart* other = at(b.vision, own.place)) {
      compare(own, *other, to);
    } else {
      to.notes.push_back("the first has a vision part at " + own.place + " and the second none");
    }
  }
  for (const VisionPart& other : b.vision) {
    if (!at(a.vision, other.place))
      to.notes.push_back("the second has a vision part at " + other.place + " and the first none");
  }
}

void check_vision(const ReadRopeConfig& read, ConfigComparison& to) {
  for (const VisionPart& part : read.vision) {
    if (!part.judged) to.notes.push_back(name_of(part) + ": not judged: " + part.instead);
    for (const std::string& warning : part.warnings)
      to.findings.push_back({{},
                             name_of(part),
                             "configuration",
                             "values that the part's code expects",
                             warning,
                             "",
                             true});
  }
}

}  // namespace sextant
