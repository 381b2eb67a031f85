// Golden cases: results of official implementations on small random inputs, one .npz file each.
//
// A few are in data/, so that a fresh clone can run the tests. The whole collection is searched in
// the folder that SEXTANT_GOLDEN names, or in ../shared/golden beside the source tree.
// data/README.md describes the arrays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/files/npz.h"
#include "tests/attention/problem.h"

namespace sextant::golden {

using Doubles = std::vector<double>;

// All accessors throw Error if the array does not exist or has another kind.
class Golden {
 public:
  explicit Golden(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  const nlohmann::json& meta() const { return meta_; }

  bool has(const std::string& array) const { return arrays_.contains(array); }
  const std::vector<int64_t>& shape(const std::string& array) const;
  Doubles numbers(const std::string& array) const;  // of any numeric type or booleans
  std::vector<int64_t> integers(const std::string& array) const;
  oracle::Tensor<double> tensor(const std::string& array) const;  // an array of 4 axes

  // Names of the arrays that are results: `out` (or `out_re` and `out_im`), `grad_X`, and `dX` or
  // `d_X` if there is an X.
  std::vector<std::string> answers() const;

 private:
  const Array& at(const std::string& array) const;

  std::string name_;
  Arrays arrays_;
  nlohmann::json meta_;
};

// The files of all available cases by name; if a case is in the tree, its path there.
std::map<std::string, std::filesystem::path> golden_files();
std::vector<std::string> kept_names();  // the cases in the tree, as data/files.txt lists them

// Names in golden_files() that start with one of `prefixes`.
std::vector<std::string> names_starting_with(const std::vector<std::string_view>& prefixes);

// Empty if |got - expected| <= tolerance * max(1, max |expected|) for each element; otherwise a
// description of the difference.
std::string difference(const std::string& what, const Doubles& got, const Doubles& expected,
                       double tolerance);

}  // namespace sextant::golden
