// Golden cases: numbers that official implementations gave on small random inputs, one .npz each.
//
// A few lie in data/, so that a clone tests itself; all of them where SEXTANT_GOLDEN says, or in
// ../shared/golden beside the source tree. data/README.md says what the arrays mean.
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

// All accessors throw Error if there is no such array, or not of that kind.
class Golden {
 public:
  explicit Golden(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  const nlohmann::json& meta() const { return meta_; }

  bool has(const std::string& array) const { return arrays_.contains(array); }
  const std::vector<int64_t>& shape(const std::string& array) const;
  Doubles numbers(const std::string& array) const;  // of any numeric type or truths
  std::vector<int64_t> integers(const std::string& array) const;
  oracle::Tensor<double> tensor(const std::string& array) const;  // of 4 axes

  // Names of the arrays that are results: `out` (or `out_re` and `out_im`), `grad_X`, and `dX` or
  // `d_X` where there is an X.
  std::vector<std::string> answers() const;

 private:
  const Array& at(const std::string& array) const;

  std::string name_;
  Arrays arrays_;
  nlohmann::json meta_;
};

// Of every case there is, by name; those kept in the tree come first.
std::map<std::string, std::filesystem::path> golden_files();
std::vector<std::string> kept_names();  // those of the tree, as data/files.txt lists them

// Those of golden_files() whose names start with one of `prefixes`.
std::vector<std::string> names_starting_with(const std::vector<std::string_view>& prefixes);

// |got - expected| <= tolerance * max(1, max |expected|), element by element; else what is wrong.
std::string difference(const std::string& what, const Doubles& got, const Doubles& expected,
                       double tolerance);

}  // namespace sextant::golden
