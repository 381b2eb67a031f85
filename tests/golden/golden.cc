#include "tests/golden/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <type_traits>

#include "sextant/base/error.h"

namespace sextant::golden {
namespace {

using Path = std::filesystem::path;

template <class T, class From>
std::vector<T> converted(const std::string& name, const From& from) {
  if constexpr (std::is_same_v<typename From::value_type, std::string>) {
    fail("golden: " + name + ": expected numbers, but got text");
  } else {
    std::vector<T> to;
    for (const auto x : from) to.push_back(static_cast<T>(x));
    return to;
  }
}

void add_files(const Path& folder, std::map<std::string, Path>& files) {
  if (!std::filesystem::is_directory(folder)) return;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".npz") files.emplace(entry.path().stem(), entry.path());
  }
}

Path kept_folder() { return Path(SEXTANT_SOURCE_DIR) / "tests" / "golden" / "data"; }

Path whole_folder() {
  if (const char* path = std::getenv("SEXTANT_GOLDEN")) return path;
  return Path(SEXTANT_SOURCE_DIR).parent_path() / "shared" / "golden";
}

}  // namespace

Golden::Golden(const Path& path) : name_(path.stem()), arrays_(read_npz(path)) {
  const auto& text = std::get<std::vector<std::string>>(at("meta").elements);
  meta_ = nlohmann::json::parse(text.at(0));
}

const Array& Golden::at(const std::string& array) const {
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) fail("golden: " + name_ + ": expected " + array + ", but got none");
  return found->second;
}

const std::vector<int64_t>& Golden::shape(const std::string& array) const {
  return at(array).shape;
}

Doubles Golden::numbers(const std::string& array) const {
  return std::visit([&](const auto& e) { return converted<double>(array, e); }, at(array).elements);
}

std::vector<int64_t> Golden::integers(const std::string& array) const {
  const Elements& elements = at(array).elements;
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&elements)) return *numbers;
  fail("golden: " + name_ + ": " + array + ": expected int64, but got another type");
}

oracle::Tensor<double> Golden::tensor(const std::string& array) const {
  const auto& axes = shape(array);
  if (axes.size() != 4) {
    fail("golden: " + name_ + ": " + array + ": expected 4 axes, but got " +
         std::to_string(axes.size()));
  }
  oracle::Tensor<double> tensor(axes[0], axes[1], axes[2], axes[3]);
  tensor.data = numbers(array);
  return tensor;
}

std::vector<std::string> Golden::answers() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays_) {
    const bool is_gradient = name.starts_with("grad_") ||
                             (name.starts_with("d") && has(name.substr(1))) ||
                             (name.starts_with("d_") && has(name.substr(2)));
    const bool is_out = name == "out" || name == "out_re" || name == "out_im";
    if (is_out || is_gradient) names.push_back(name);
  }
  return names;
}

std::map<std::string, Path> golden_files() {
  std::map<std::string, Path> files;
  add_files(kept_folder(), files);
  add_files(whole_folder(), files);
  return files;
}

std::vector<std::string> kept_names() {
  const Path list = kept_folder() / "files.txt";
  std::ifstream file(list);
  if (!file) fail("golden: " + list.string() + ": expected a list of the cases in the tree");
  std::vector<std::string> names;
  for (std::string name; std::getline(file, name);) names.push_back(name);
  return names;
}

std::vector<std::string> names_starting_with(const std::vector<std::string_view>& prefixes) {
  std::vector<std::string> names;
  for (const auto& [name, path] : golden_files()) {
    const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (std::any_of(prefixes.begin(), prefixes.end(), starts)) names.push_back(name);
  }
  return names;
}

std::string difference(const std::string& what, const Doubles& got, const Doubles& expected,
                       double tolerance) {
  if (got.size() != expected.size()) {
    return what + ": expected " + std::to_string(expected.size()) + " elements, but got " +
           std::to_string(got.size());
  }
  double magnitude = 1;
  for (const double x : expected) magnitude = std::max(magnitude, std::abs(x));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]);
    if (!(error <= tolerance * magnitude)) {
      return what + "[" + std::to_string(i) + "]: expected " + std::to_string(expected[i]) +
             ", but got " + std::to_string(got[i]) + ", which is " +
             std::to_string(error / tolerance / magnitude) + " times the tolerance";
    }
  }
  return "";
}

}  // namespace sextant::golden
