// Golden cases: results of official implementations on small random inputs, one .safetensors file
// each in data/, whose README.md describes the arrays.
//
// These tests are those of the core: tables, stretches, and attention on its operands. The methods'
// cases are run by `python -m sextant.conformance`, over these files and the whole collection.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/files/safetensors.h"
#include "tests/attention/tensor.h"

namespace sextant::golden {

using Doubles = std::vector<double>;

// The case data/NAME.safetensors. All functions throw Error if the file or the array does not
// exist, or has another type.
class Golden {
 public:
  explicit Golden(const std::string& name);
  Golden(const Golden&) = delete;
  Golden& operator=(const Golden&) = delete;

  const nlohmann::json& meta() const { return meta_; }

  bool has(const std::string& array) const { return arrays_.contains(array); }
  const std::vector<int64_t>& shape(const std::string& array) const { return at(array).shape; }
  Doubles numbers(const std::string& array) const;  // of any type
  std::vector<int64_t> integers(const std::string& array) const;
  std::vector<uint64_t> words(const std::string& array) const;    // U64
  oracle::Tensor<double> tensor(const std::string& array) const;  // an array of 4 axes

 private:
  const TensorBytes& at(const std::string& array) const;

  std::string name_, bytes_;
  std::map<std::string, TensorBytes> arrays_;
  nlohmann::json meta_;
};

// Empty if |got - expected| <= tolerance * max(1, max |expected|) for each element; otherwise a
// description of the difference.
std::string difference(const std::string& what, const Doubles& got, const Doubles& expected,
                       double tolerance);

}  // namespace sextant::golden
