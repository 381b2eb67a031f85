// The file's objects are walked down from the top; the type of each decides whether it is a vision
// part, and a row of the table gives its form as expressions over the object's fields. The pairs
// then follow from position/axes.h.
#include "sextant/rope_config/vision.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/position/axes.h"
#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/hugging_face.h"

namespace sextant {

extern const std::string_view kVisionFamilies;

namespace {

using nlohmann::json;

constexpr int kDeepestObject = 4;  // nesting depth of objects
constexpr size_t kMostParts = 64;  // a damaged file may have any number
constexpr std::string_view kEachAxis = "half-split in each axis";

const json& table() {
  static const json parsed = parse_json(std::string(kVisionFamilies), "families: vision");
  return parsed;
}

std::string origin_of(const std::string& folder) {
  return table().at("code").get<std::string>() + " " + table().at("version").get<std::string>() +
         ", " + source_of(folder);
}

// A model's row, and the defaults of its code for the fields that the row's expressions read.
struct Row {
  const json* form = nullptr;
  std::string folder;
  const json* defaults = nullptr;
};

Row row_of(const std::string& type) {
  if (type.empty()) return {};
  for (const json& form : table().at("rotating")) {
    for (const auto& folder : form.at("models").items()) {
      const auto found = folder.value().find(type);
      if (found != folder.value().end()) return {&form, folder.key(), &*found};
    }
  }
  return {};
}

// The positions of a part that does not rotate, and the folder of its code; empty: not in the
// table.
std::pair<std::string, std::string> unrotated(const std::string& type) {
  if (type.empty()) return {};
  for (const auto& words : table().at("unrotated").items()) {
    for (const auto& folder : words.value().items()) {
      const json& types = folder.value();
      if (std::ranges::find(types, json(type)) != types.end()) return {words.key(), folder.key()};
    }
  }
  return {};
}

std::string text_at(const json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The fields of a part as its code reads them: those of the file, else the code's defaults.
class Fields {
 public:
  Fields(const json& object, const Row& row) : object_(object), row_(row) {}

  json value(const std::string& name) const {
    if (name == "head_dim" && head_dim_ > 0) return head_dim_;
    if (name == "rope_theta") return base();
    const std::string own =
        name == "num_attention_heads" && row_.defaults->contains("num_heads") ? "num_heads" : name;
    for (const std::string& key : {own, name}) {
      if (object_.contains(key) && !object_.at(key).is_null()) return object_.at(key);
    }
    return row_.defaults->value(own, json());
  }
  // Null if the row has no such expression.
  json expression(const char* key) const {
    if (!row_.form->contains(key)) return nullptr;
    return evaluate(row_.form->at(key).get<std::string>(),
                    [this](const std::string& name) { return Value(value(name)); });
  }
  int64_t integer(const char* key, int64_t most) const {
    const json found = expression(key);
    if (found.is_null()) return 0;
    const double x = found.is_number() ? found.get<double>() : -1;
    if (!(x >= 0 && x <= static_cast<double>(most)) || x != std::floor(x))
      fail(std::string(key) + ": expected an integer from 0 to " + std::to_string(most) +
           ", but got " + shown(found));
    return static_cast<int64_t>(x);
  }
  std::string text(const char* key) const { return row_.form->value(key, ""); }
  bool flag(const char* key) const { return row_.form->value(key, false); }
  void set_head_dim(int64_t channels) { head_dim_ = channels; }
  const json* parameters() const {
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const auto found = object_.find(key);
      if (found != object_.end() && found->is_object() && !found->empty()) return &*found;
    }
    return nullptr;
  }
  json code_base() const { return row_.defaults->at("rope_theta"); }

 private:
  // DINOv3 has the field alone; the others have it within the parameters, or beside them.
  json base() const {
    const json* inside = flag("plain_base") ? nullptr : parameters();
    if (inside && inside->contains("rope_theta") && !inside->at("rope_theta").is_null())
      return inside->at("rope_theta");
    const auto beside = object_.find("rope_theta");
    return beside != object_.end() && !beside->is_null() ? *beside : code_base();
  }

  const json& object_;
  const Row& row_;
  int64_t head_dim_ = 0;
};

AxisOrder order_named(const std::string& order) {
  return order == "restart"   ? AxisOrder::kRestart
         : order == "strided" ? AxisOrder::kStrided
                              : AxisOrder::kRestartInterleaved;
}

void add_pairs(VisionPart& part) {
  const auto axes = static_cast<int64_t>(part.axes.size());
  if (part.rotary_dim < 2 * axes || part.rotary_dim % (2 * axes) != 0 ||
      part.rotary_dim > part.head_dim) {
    fail("channels that rotate: expected a multiple of " + std::to_string(2 * axes) + " up to " +
         std::to_string(part.head_dim) + ", as each of " + std::to_string(axes) +
         (axes == 1 ? " axis" : " axes") + " has as many pairs, but got " +
         std::to_string(part.rotary_dim));
  }
  const int64_t pairs = part.rotary_dim / (2 * axes);
  part.sections.assign(axes, pairs);
  Spectrum spectrum = rotary(
      {.dim = part.rotary_dim,
       .base = part.base,
       .pairing = part.pairing == "interleaved" ? Pairing::kInterleaved : Pairing::kHalfSplit});
  if (part.order != "one") {
    spectrum = follow_axes(std::move(spectrum), part.sections, order_named(part.order), part.base);
  }
  const double unit = part.normalised ? 2 * std::numbers::pi : 1;
  for (const Spectrum::Pair& pair : spectrum.pairs) {
    VisionPair to{pair.axis, static_cast<double>(pair.frequency) * unit, pair.first, pair.second};
    if (part.pairing == kEachAxis) {
      to.first = static_cast<int>(pair.first + pair.axis * pairs);
      to.second = static_cast<int>(to.first + pairs);
    }
    part.pairs.push_back(to);
  }
}

void read_base(VisionPart& part, const Fields& fields) {
  const json base = fields.value("rope_theta");
  if (!base.is_number() || !(base.get<double>() >= 1e-3 && base.get<double>() <= 1e30))
    fail("rope_theta: expected a number from 0.001 to 1e+30, but got " + shown(base));
  part.base = base.get<double>();
  const json* parameters = fields.parameters();
  if (parameters == nullptr) return;
  const std::string key = text_at(*parameters, "rope_type").empty() ? "type" : "rope_type";
  const std::string type = text_at(*parameters, key);
  if (!type.empty() && type != "default" && type != "axial")
    fail(key + ": expected axial or default, but got " + shown(json(type)));
}

void read_layers(VisionPart& part, const Fields& fields) {
  part.window = fields.integer("window", 1 << 20);
  const json full = fields.expression("full_layers");
  if (!full.is_array()) return;
  for (size_t i = 0; i < full.size(); ++i) {
    if (full[i].is_string() ? full[i] == "full_attention" : full[i].is_number_integer())
      part.full_layers.push_back(full[i].is_string() ? static_cast<int64_t>(i)
                                                     : full[i].get<int64_t>());
  }
  const json scale = fields.expression("full_scale");
  if (scale.is_number()) part.full_scale = scale.get<double>();
}

void read_grid(VisionPart& part, const Fields& fields) {
  const json grid = fields.expression("grid");
  if (!grid.is_array()) return;
  part.grid.emplace();
  for (size_t i = 0; i < 2; ++i) {
    const double side = grid.at(i).is_number() ? grid.at(i).get<double>() : 0;
    if (side < 1 || side > 1 << 20)
      fail("image_size: expected at least a patch a side, but got a grid of " + shown(grid));
    (*part.grid)[i] = static_cast<int64_t>(side);
  }
  const json image = fields.value("image_size"), patch = fields.value("patch_size");
  if (!image.is_number_integer() || !patch.is_number_integer() || patch.get<int64_t>() < 1) return;
  if (const int64_t rest = image.get<int64_t>() % patch.get<int64_t>(); rest != 0) {
    part.warnings.push_back("image_size " + image.dump() + " is no multiple of patch_size " +
                            patch.dump() + ": the last " + std::to_string(rest) +
                            " rows and columns of pixels are in no patch");
  }
}

void read_rotation(VisionPart& part, const json& object, const Row& row,
                   const std::vector<RopeConfig>& text) {
  Fields fields(object, row);
  part.axes = row.form->at("axes").get<std::vector<std::string>>();
  part.form = fields.text("form");
  part.order = fields.text("order");
  part.pairing = fields.text("pairing");
  part.where = fields.text("where");
  part.first_token = fields.text("first_token");
  part.last_token = fields.text("last_token");
  part.adds = fields.text("adds");
  part.normalised = fields.flag("normalised");
  part.only_grid = fields.flag("only_grid");
  part.first_index = row.form->value("first_index", 0);
  part.head_dim = fields.integer("head_dim", kWidestHead);
  fields.set_head_dim(part.head_dim);
  part.rotary_dim =
      row.form->contains("rotary_dim") ? fields.integer("rotary_dim", kWidestHead) : part.head_dim;
  part.table_size = fields.integer("table", 1 << 30);
  read_base(part, fields);
  add_pairs(part);
  read_grid(part, fields);
  read_layers(part, fields);
  part.rotates = true;
  const double usual = fields.code_base().get<double>();
  if (part.base == usual) return;
  if (std::ranges::any_of(text, [&](const RopeConfig& x) { return x.base == part.base; })) {
    part.warnings.push_back("rope_theta " + json(part.base).dump() +
                            " is that of the language model; the code's own for this part is " +
                            json(usual).dump());
  }
}

bool names_vision(const std::string& key) {
  return std::ranges::any_of(std::array{"vision", "visual", "vit_", "image_encoder"},
                             [&](const char* word) { return key.find(word) != std::string::npos; });
}

VisionPart not_judged(const std::string& place, const std::string& type, const std::string& reason,
                      const std::string& origin = "") {
  return {.place = place, .model_type = type, .origin = origin, .instead = reason, .judged = false};
}

class Walk {
 public:
  Walk(const std::vector<RopeConfig>& text, std::vector<VisionPart>& found)
      : text_(text), found_(found) {}

  void visit(const json& object, const std::string& type, const std::string& place, int depth) {
    if (found_.size() == kMostParts) return;
    add(object, type, place);
    if (depth >= kDeepestObject) return;
    for (const auto& item : object.items()) {
      if (!item.value().is_object()) continue;
      const std::string& key = item.key();
      const std::string inner = place.empty() ? key : place + "." + key;
      const std::string fixed = part_type("parts", type, key);
      std::string own = text_at(item.value(), "model_type");
      const std::string usual = part_type("usual_parts", type, key);
      const std::string runs = !fixed.empty() ? fixed : own.empty() ? usual : own;
      const size_t before = found_.size();
      visit(item.value(), runs, inner, depth + 1);
      if (found_.size() == before && names_vision(key)) {
        push(not_judged(inner, runs,
                        runs.empty() ? "it has no model_type" : "its type is in no table"));
      }
      if (!fixed.empty() && !own.empty() && own != fixed && found_.size() > before) {
        found_[before].notes.push_back("the file's model_type " + shown(json(own)) +
                                       " is not read: the code of " + type + " runs " + fixed);
      }
    }
  }

 private:
  static std::string part_type(const char* which, const std::string& type, const std::string& key) {
    const json& parts = table().at(which);
    return parts.contains(type) ? text_at(parts.at(type), key) : "";
  }

  // The last of the most parts says that there may be others.
  void push(VisionPart part) {
    if (found_.size() == kMostParts) return;
    if (found_.size() + 1 == kMostParts) {
      part = not_judged(part.place, part.model_type,
                        "a file has at most " + std::to_string(kMostParts) + " vision parts");
    }
    found_.push_back(std::move(part));
  }

  void add(const json& object, const std::string& type, const std::string& place) {
    VisionPart part{.place = place, .model_type = type, .origin = ""};
    if (const Row row = row_of(type); row.form != nullptr) {
      part.origin = origin_of(row.folder);
      try {
        read_rotation(part, object, row, text_);
      } catch (const std::exception& error) {
        part = not_judged(place, type, reason_of(error), part.origin);
      }
      push(std::move(part));
    } else if (const auto [words, folder] = unrotated(type); !words.empty()) {
      part.origin = origin_of(folder);
      part.instead = words;
      push(std::move(part));
    }
  }

  const std::vector<RopeConfig>& text_;
  std::vector<VisionPart>& found_;
};

json or_null(const std::string& text) { return text.empty() ? json() : json(text); }

}  // namespace

std::vector<VisionPart> read_vision(const json& config, const std::vector<RopeConfig>& text) {
  std::vector<VisionPart> found;
  if (config.is_object()) Walk(text, found).visit(config, text_at(config, "model_type"), "", 0);
  return found;
}

std::string coordinates_of(const VisionPart& part) {
  if (!part.rotates) return "";
  if (part.normalised) return "the patch's centre between the grid's edges at -1 and 1, times 2 pi";
  return "the patch's index from " + std::to_string(part.first_index);
}

std::string windows_of(const VisionPart& part) {
  if (part.window == 0) return "";
  const std::string side = std::to_string(part.window);
  std::string words = "windows of " + side + " x " + side + " patches", layers;
  for (const int64_t layer : part.full_layers)
    layers += (layers.empty() ? "" : ", ") + std::to_string(layer);
  if (!layers.empty()) words += "; all patches in layers " + layers;
  if (part.full_scale != 1) words += ", at coordinates times " + json(part.full_scale).dump();
  return words;
}

json vision_json(const VisionPart& part) {
  json pairs = json::array();
  for (const VisionPair& pair : part.pairs) {
    pairs.push_back({{"axis", pair.axis},
                     {"frequency", pair.frequency},
                     {"channels", {pair.first, pair.second}}});
  }
  const bool rotates = part.rotates;
  const auto if_rotating = [&](json value) { return rotates ? std::move(value) : json(); };
  return {{"place", part.place},
          {"model_type", or_null(part.model_type)},
          {"origin", or_null(part.origin)},
          {"judged", part.judged},
          {"rotates", part.judged ? json(rotates) : json()},
          {"instead", or_null(part.instead)},
          {"where", or_null(part.where)},
          {"form", or_null(part.form)},
          {"head_dim", if_rotating(part.head_dim)},
          {"rotary_dim", if_rotating(part.rotary_dim)},
          {"base", if_rotating(part.base)},
          {"pairing", or_null(part.pairing)},
          {"axes", if_rotating(part.axes)},
          {"order", or_null(part.order)},
          {"sections", if_rotating(part.sections)},
          {"coordinates", or_null(coordinates_of(part))},
          {"first_index", if_rotating(part.normalised ? json() : json(part.first_index))},
          {"normalised", if_rotating(part.normalised)},
          {"first_token", or_null(part.first_token)},
          {"last_token", or_null(part.last_token)},
          {"grid", part.grid ? json(*part.grid) : json()},
          {"only_grid", if_rotating(part.only_grid)},
          {"window", part.window == 0 ? json() : json(part.window)},
          {"full_layers", if_rotating(part.full_layers)},
          {"full_scale", if_rotating(part.full_scale)},
          {"adds", or_null(part.adds)},
          {"table_size", part.table_size == 0 ? json() : json(part.table_size)},
          {"pairs", pairs},
          {"notes", part.notes},
          {"warnings", part.warnings}};
}

}  // namespace sextant
