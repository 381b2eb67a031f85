// libyaml gives events, from which the values are built recursively. The size of an alias, its
// nodes and the bytes of their text, counts each time that it is used, so that a short text cannot
// stand for a large value.
#include "sextant/files/yaml.h"

#include <yaml.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr size_t kMostSize = size_t{1} << 20;  // of nodes and bytes together

struct Anchored {
  json value;
  size_t size = 0;
};

class YamlReader {
 public:
  YamlReader(const std::string& text, std::string where) : where_(std::move(where)) {
    if (yaml_parser_initialize(&parser_) == 0) fail(where_ + ": libyaml has no memory");
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    yaml_parser_set_input_string(&parser_, bytes, text.size());
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;
  ~YamlReader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  json documents() {
    json all = json::array();
    for (next(); event_.type != YAML_STREAM_END_EVENT; next()) {
      if (event_.type != YAML_DOCUMENT_START_EVENT) continue;
      anchors_.clear();
      next();
      all.push_back(value(0));
    }
    return all.size() == 1 ? all.at(0) : all;
  }

 private:
  [[noreturn]] void wrong(const std::string& what, size_t line) const {
    fail(where_ + ": line " + std::to_string(line + 1) + ": " + what);
  }

  void next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) != 0) return;
    wrong("expected YAML, but libyaml says: " +
              std::string(parser_.problem != nullptr ? parser_.problem : "it cannot be read"),
          parser_.problem_mark.line);
  }

  // The value that begins with the current event.
  json value(int depth) {
    const size_t line = event_.start_mark.line;
    if (depth >= kDeepestJson)
      wrong("expected at most " + std::to_string(kDeepestJson) +
                " mappings and lists within each other, but got more",
            line);
    const size_t before = size_;
    count(1, line);
    const std::string anchor = anchor_of_event();
    json made;
    switch (event_.type) {
      case YAML_ALIAS_EVENT: {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) wrong("expected an anchor &" + anchor + " before this", line);
        count(found->second.size, line);
        return found->second.value;
      }
      case YAML_SEQUENCE_START_EVENT:
        made = json::array();
        for (next(); event_.type != YAML_SEQUENCE_END_EVENT; next())
          made.push_back(value(depth + 1));
        break;
      case YAML_MAPPING_START_EVENT:
        made = mapping(depth);
        break;
      default:
        made = scalar();
        count(event_.data.scalar.length, line);
    }
    if (!anchor.empty()) anchors_[anchor] = {made, size_ - before};
    return made;
  }

  json mapping(int depth) {
    json made = json::object();
    std::vector<json> merged;
    for (next(); event_.type != YAML_MAPPING_END_EVENT; next()) {
      const size_t line = event_.start_mark.line;
      if (event_.type != YAML_SCALAR_EVENT) wrong("expected a key that is a scalar", line);
      const std::string key = text_of_event();
      count(key.size(), line);
      next();
      json member = value(depth + 1);
      if (key == "<<") {
        merged.push_back(std::move(member));
      } else if (!made.emplace(key, std::move(member)).second) {
        wrong(json(key.substr(0, 60)).dump(-1, ' ', true, json::error_handler_t::replace) +
                  ": expected once, but got two",
              line);
      }
    }
    for (const json& mappings : merged) {
      for (const json& one : mappings.is_array() ? mappings : json::array({mappings})) {
        if (!one.is_object()) wrong("<<: expected a mapping", event_.start_mark.line);
        for (const auto& [key, member] : one.items()) made.emplace(key, member);
      }
    }
    return made;
  }

  json scalar() const {
    const std::string text = text_of_event();
    const bool plain = event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return plain && (text.empty() || text == "~" || text == "null") ? json() : json(text);
  }

  std::string text_of_event() const {
    const auto& scalar = event_.data.scalar;
    return {reinterpret_cast<const char*>(scalar.value), scalar.length};
  }

  std::string anchor_of_event() const {
    const unsigned char* anchor = nullptr;
    if (event_.type == YAML_ALIAS_EVENT) anchor = event_.data.alias.anchor;
    if (event_.type == YAML_SCALAR_EVENT) anchor = event_.data.scalar.anchor;
    if (event_.type == YAML_SEQUENCE_START_EVENT) anchor = event_.data.sequence_start.anchor;
    if (event_.type == YAML_MAPPING_START_EVENT) anchor = event_.data.mapping_start.anchor;
    return anchor != nullptr ? reinterpret_cast<const char*>(anchor) : "";
  }

  void count(size_t size, size_t line) {
    size_ += size;
    if (size_ <= kMostSize) return;
    wrong("expected at most " + std::to_string(kMostSize) +
              " values and bytes, with what aliases stand for, but got more",
          line);
  }

  std::string where_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::map<std::string, Anchored> anchors_;
  size_t size_ = 0;
};

}  // namespace

json read_yaml(const std::string& text, const std::string& where) {
  return YamlReader(text, where).documents();
}

}  // namespace sextant
