#include "sextant/lab/data/bigram.h"

#include <cmath>

namespace sextant::lab {
namespace {

constexpr size_t kBytes = 256;

size_t index_of(char byte) { return static_cast<unsigned char>(byte); }

struct Counts {
  std::vector<double> pairs = std::vector<double>(kBytes * kBytes, 0);  // [first, second]
  std::vector<double> bytes = std::vector<double>(kBytes, 0);
  double all = 0;

  double share(size_t byte) const { return (bytes[byte] + 1) / (all + kBytes); }
  double loss(size_t first, size_t second) const {
    return -std::log((pairs[first * kBytes + second] + share(second)) / (bytes[first] + 1));
  }
};

Counts counts_of(std::string_view text) {
  Counts counts;
  for (size_t n = 0; n < text.size(); ++n) {
    ++counts.bytes[index_of(text[n])];
    ++counts.all;
    if (n > 0) ++counts.pairs[index_of(text[n - 1]) * kBytes + index_of(text[n])];
  }
  return counts;
}

}  // namespace

BigramLoss bigram_loss(std::string_view train, std::span<const std::string_view> blocks,
                       int64_t scored) {
  const Counts counts = counts_of(train);
  BigramLoss result;
  for (const std::string_view block : blocks) {
    double sum = 0;
    for (size_t n = block.size() - static_cast<size_t>(scored); n < block.size(); ++n) {
      sum += counts.loss(index_of(block[n - 1]), index_of(block[n]));
    }
    result.blocks.push_back(sum / static_cast<double>(scored));
    result.mean += result.blocks.back() / static_cast<double>(blocks.size());
  }
  return result;
}

}  // namespace sextant::lab
