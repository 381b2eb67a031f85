#include "tests/chart/xml.h"

#include <expat.h>

#include <memory>
#include <sstream>
#include <stdexcept>

namespace sextant {
namespace {

struct Builder {
  std::vector<Element> open{1};  // the first is the document itself

  static void start(void* self, const char* name, const char** attributes) {
    Element element;
    element.name = name;
    for (; *attributes != nullptr; attributes += 2)
      element.attributes[attributes[0]] = attributes[1];
    static_cast<Builder*>(self)->open.push_back(std::move(element));
  }
  static void end(void* self, const char*) {
    auto& open = static_cast<Builder*>(self)->open;
    Element done = std::move(open.back());
    open.pop_back();
    open.back().children.push_back(std::move(done));
  }
  static void text(void* self, const char* text, int length) {
    static_cast<Builder*>(self)->open.back().text.append(text, static_cast<size_t>(length));
  }
};

}  // namespace

std::string Element::attribute(const std::string& key) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? "" : found->second;
}

bool Element::is(std::string_view css) const {
  std::istringstream words(attribute("class"));
  for (std::string word; words >> word;) {
    if (word == css) return true;
  }
  return false;
}

std::vector<const Element*> Element::all() const {
  std::vector<const Element*> out = {this};
  for (const Element& child : children) {
    const auto below = child.all();
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

std::vector<const Element*> Element::all(std::string_view wanted, std::string_view css) const {
  std::vector<const Element*> out;
  for (const Element* element : all()) {
    if (element->name == wanted && (css.empty() || element->is(css))) out.push_back(element);
  }
  return out;
}

Element parse_xml(std::string_view document) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  Builder builder;
  XML_SetUserData(parser.get(), &builder);
  XML_SetElementHandler(parser.get(), &Builder::start, &Builder::end);
  XML_SetCharacterDataHandler(parser.get(), &Builder::text);
  const int length = static_cast<int>(document.size());
  if (XML_Parse(parser.get(), document.data(), length, XML_TRUE) != XML_STATUS_OK) {
    throw std::runtime_error("line " + std::to_string(XML_GetCurrentLineNumber(parser.get())) +
                             ": " + XML_ErrorString(XML_GetErrorCode(parser.get())));
  }
  return std::move(builder.open.front().children.front());
}

}  // namespace sextant
