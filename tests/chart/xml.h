// A small tree of an XML document, parsed by expat, which accepts well-formed documents only.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // without the text of its children
  std::vector<Element> children;

  // The attribute's value, or "".
  std::string attribute(const std::string& key) const;
  // Whether the class attribute contains this word.
  bool is(std::string_view css) const;
  // The element and all its descendants, in document order.
  std::vector<const Element*> all() const;
  // The elements of this name, and of this class if one is given.
  std::vector<const Element*> all(std::string_view name, std::string_view css = "") const;
};

// Throws std::runtime_error with the place if the document is not well-formed.
Element parse_xml(std::string_view document);

}  // namespace sextant
