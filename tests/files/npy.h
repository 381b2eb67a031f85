// The .npy files of charts, which are float64 in C order.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace sextant {

struct NpyMatrix {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

inline NpyMatrix parse_npy(const std::string& bytes) {
  NpyMatrix matrix;
  const size_t data = bytes.find('\n') + 1;
  std::istringstream shape(bytes.substr(bytes.find("'shape': (") + 10));
  for (int64_t axis = 0; shape >> axis; shape.ignore()) matrix.shape.push_back(axis);
  matrix.values.resize((bytes.size() - data) / sizeof(double));
  std::memcpy(matrix.values.data(), bytes.data() + data, matrix.values.size() * sizeof(double));
  return matrix;
}

inline NpyMatrix read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return parse_npy({std::istreambuf_iterator<char>(file), {}});
}

}  // namespace sextant
