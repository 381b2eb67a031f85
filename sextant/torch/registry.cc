// Methods by name. Which there are is said once, in methods/CMakeLists.txt.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"

namespace sextant {

std::vector<MethodInfo> listed_methods();  // made by CMake from the list of files

namespace {

std::string list(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return result.empty() ? "none" : result;
}

void check_shape(const ModelShape& shape) {
  for (const auto& [field, size, least] : {std::tuple{"layers", shape.layers, 1},
                                           {"heads", shape.heads, 1},
                                           {"key_heads", shape.key_heads, 1},
                                           {"head_dim", shape.head_dim, 0},
                                           {"width", shape.width, 0},
                                           {"train_length", shape.train_length, 0},
                                           {"vocabulary", shape.vocabulary, 0}})
    if (size < least)
      fail("model shape: " + std::string(field) + ": expected at least " + std::to_string(least) +
           ", but got " + std::to_string(size));
  if (shape.heads % shape.key_heads != 0)
    fail("model shape: heads: expected a multiple of the " + std::to_string(shape.key_heads) +
         " key heads, but got " + std::to_string(shape.heads));
}

nlohmann::json complete(const MethodInfo& info, const nlohmann::json& options) {
  nlohmann::json result = nlohmann::json::parse(info.defaults);
  if (options.is_null()) return result;
  if (!options.is_object())
    fail(info.name + ": options: expected a JSON object, but got " + options.dump());
  for (const auto& [option, value] : options.items()) {
    if (!result.contains(option)) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : result.items()) known.push_back(name);
      fail(info.name + ": options: expected any of " + list(known) + ", but got \"" + option +
           "\"");
    }
    result[option] = value;
  }
  return result;
}

const MethodInfo& method_info(std::string_view name) {
  std::vector<std::string> names;
  for (const MethodInfo& info : methods()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  fail("method: expected one of " + list(names) + ", but got \"" + std::string(name) + "\"");
}

}  // namespace

std::span<const MethodInfo> methods() {
  static const std::vector<MethodInfo> all = [] {
    std::vector<MethodInfo> found = listed_methods();
    std::ranges::sort(found, {}, &MethodInfo::name);
    return found;
  }();
  return all;
}

nlohmann::json complete_options(std::string_view name, const nlohmann::json& options) {
  return complete(method_info(name), options);
}

std::unique_ptr<Method> make_method(std::string_view name, const ModelShape& shape,
                                    const nlohmann::json& options) {
  check_shape(shape);
  const MethodInfo& info = method_info(name);
  return info.make(shape, complete(info, options));
}

}  // namespace sextant
