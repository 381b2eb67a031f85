#include "tests/golden/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/files/read_file.h"

namespace sextant::golden {
namespace {

template <class T>
std::vector<T> elements(const TensorBytes& array) {
  std::vector<T> all(array.bytes.size() / sizeof(T));
  std::memcpy(all.data(), array.bytes.data(), all.size() * sizeof(T));
  return all;
}

template <class T>
Doubles converted(const TensorBytes& array) {
  const std::vector<T> all = elements<T>(array);
  return Doubles(all.begin(), all.end());
}

}  // namespace

Golden::Golden(const std::string& name)
    : name_(name),
      bytes_(read_file(SEXTANT_SOURCE_DIR "/tests/golden/data/" + name + ".safetensors")) {
  Safetensors file = parse_safetensors(bytes_);
  for (TensorBytes& array : file.tensors) arrays_.emplace(array.name, array);
  meta_ = nlohmann::json::parse(file.metadata.at("meta"));
}

const TensorBytes& Golden::at(const std::string& array) const {
  const auto found = arrays_.find(array);
  if (found == arrays_.end()) fail("golden: " + name_ + ": expected " + array + ", but got none");
  return found->second;
}

Doubles Golden::numbers(const std::string& array) const {
  const TensorBytes& x = at(array);
  if (x.dtype == "F64") return converted<double>(x);
  if (x.dtype == "F32") return converted<float>(x);
  if (x.dtype == "I64") return converted<int64_t>(x);
  if (x.dtype == "BOOL" || x.dtype == "U8") return converted<uint8_t>(x);
  fail("golden: " + name_ + ": " + array + ": expected F64, F32, I64, U8 or BOOL, but got " +
       x.dtype);
}

std::vector<int64_t> Golden::integers(const std::string& array) const {
  const TensorBytes& x = at(array);
  if (x.dtype == "I64") return elements<int64_t>(x);
  fail("golden: " + name_ + ": " + array + ": expected I64, but got " + x.dtype);
}

std::vector<uint64_t> Golden::words(const std::string& array) const {
  const TensorBytes& x = at(array);
  if (x.dtype == "U64") return elements<uint64_t>(x);
  fail("golden: " + name_ + ": " + array + ": expected U64, but got " + x.dtype);
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
