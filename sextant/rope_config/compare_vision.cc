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

std::string rotation(const VisionPart& part) {
  return part.rotates ? "rotates" : "does not rotate: " + part.instead;
}
std::string axes(const VisionPart& part) {
  std::string all;
  for (size_t a = 0; a < part.axes.size(); ++a)
    all += (a == 0 ? "" : ", ") + part.axes[a] + " " + std::to_string(part.sections[a]) + " pairs";
  return all + (part.order == "one" ? "" : " (" + part.order + ")");
}
std::string pairing(const VisionPart& part) { return part.pairing; }
std::string channels(const VisionPart& part) {
  return std::to_string(part.rotary_dim) + " of " + std::to_string(part.head_dim);
}
std::string base(const VisionPart& part) { return nlohmann::json(part.base).dump(); }
std::string grid(const VisionPart& part) {
  return part.grid ? std::to_string((*part.grid)[0]) + " x " + std::to_string((*part.grid)[1])
                   : "any";
}
std::string windows(const VisionPart& part) {
  const std::string all = windows_of(part);
  return all.empty() ? "none" : all;
}

struct Field {
  const char* name;
  std::string (*words)(const VisionPart&);
};
constexpr Field kFields[] = {{"axes", axes},
                             {"pairing", pairing},
                             {"rotated channels", channels},
                             {"base", base},
                             {"coordinates", coordinates_of},
                             {"grid", grid},
                             {"windows", windows}};

void compare(const VisionPart& own, const VisionPart& other, ConfigComparison& to) {
  const auto equal = [&](const Field& field) {
    const std::string a = field.words(own), b = field.words(other);
    if (a != b) to.findings.push_back({{}, name_of(own), field.name, a, b, "", false});
    return a == b;
  };
  if (!own.judged || !other.judged) {
    const VisionPart& part = own.judged ? other : own;
    add_unjudged(to, name_of(part), part.instead, {});
  } else if (equal({"rotation", rotation}) && own.rotates) {
    for (const Field& field : kFields) equal(field);
  }
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
