// A small tree of an XML document, by expat, which accepts well-formed documents only.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // its own, without its children's
  std::vector<Element> children;

  // "" if it is not there.
  std::string attribute(const std::string& key) const;
  // Whether its class attribute has this word.
  bool is(std::string_view css) const;
  // Itself and all below it, in the order of the document.
  std::vector<const Element*> all() const;
  // Those of that name, and of that class if one is given.
  std::vector<const Element*> all(std::string_view name, std::string_view css = "") const;
};

// Throws std::runtime_error that says where it is not well-formed.
Element parse_xml(std::string_view document);

}  // namespace sextant
