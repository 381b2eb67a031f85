// Documents are sorted by content, cut, and dealt to training and test data. Bytes that are not
// UTF-8 are refused with their offset.
#include "sextant/lab/data/corpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "sextant/base/reason.h"
#include "sextant/base/unicode.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/read_file.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFewestParts = 20;

// The file itself, or all files below a folder.
std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

// Cuts a document into nearly equal parts of at most `most` bytes.
std::vector<std::string_view> parts_of(std::string_view document, size_t most) {
  const size_t count = (document.size() + most - 1) / most;
  std::vector<std::string_view> parts;
  for (size_t n = 0; n < count; ++n) {
    const size_t begin = document.size() * n / count, end = document.size() * (n + 1) / count;
    parts.push_back(document.substr(begin, end - begin));
  }
  return parts;
}

// Bytes of one training sequence: length + 1.
uint64_t bytes_to_train_on(const Corpus& corpus, int64_t length) {
  const auto bytes = static_cast<uint64_t>(length) + 1;
  if (corpus.train.size() < bytes)
    fail(fmt::format("text: expected at least {} bytes to train on, but got {}", bytes,
                     corpus.train.size()));
  return bytes;
}

// Consecutive blocks in each test document. A block's last byte is the next block's first.
std::vector<std::string_view> test_places(const Corpus& corpus, int64_t length) {
  std::vector<std::string_view> places;
  int64_t begin = 0;
  for (const int64_t end : corpus.test_ends) {
    for (; begin + length < end; begin += length)
      places.push_back(std::string_view(corpus.test)
                           .substr(static_cast<size_t>(begin), static_cast<size_t>(length) + 1));
    begin = end;
  }
  return places;
}

constexpr size_t kTextPerNul = 1000;
constexpr size_t kTextPerBroken = 10;

// Count of invalid bytes and offset of the first one.
struct Found {
  size_t count = 0, first = 0;
  void add(size_t offset) {
    if (count++ == 0) first = offset;
  }
};

// Counts the ASCII bytes other than NUL from `at` on, eight at a time for speed.
size_t plain_bytes(std::string_view bytes, size_t at) {
  constexpr uint64_t kHigh = 0x8080808080808080, kLow = 0x0101010101010101;
  const size_t begin = at;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes.data() + at, 8);
    if (((eight | (eight - kLow)) & kHigh) != 0) break;  // some byte is non-ASCII or NUL
  }
  const auto is_plain = [](char c) { return static_cast<signed char>(c) > 0; };
  while (at < bytes.size() && is_plain(bytes[at])) ++at;
  return at - begin;
}

// Length of the UTF-8 encoding of a code point that starts at `at`; 0 if invalid.
size_t character_length(std::string_view bytes, size_t at) {
  std::string_view rest = bytes.substr(at);
  return take_code_point(rest) ? bytes.size() - at - rest.size() : 0;
}

std::string hint(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return ": it is compressed by gzip; unpack it first";
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff"))
    return ": it begins as UTF-16 does; convert it to UTF-8";
  return "";
}

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

Corpus read_corpus(std::span<const fs::path> paths, double test_share) {
  std::vector<std::string> documents, names;
  for (const fs::path& path : paths) {
    names.push_back(path.string());
    try {
      for (const fs::path& file : files_of(path)) {
        documents.push_back(read_file(file));
        check_text(documents.back(), file.string());
      }
    } catch (const std::exception& error) {
      fail("text: " + reason_of(error));
    }
  }
  if (std::ranges::all_of(documents, &std::string::empty))
    fail(fmt::format("text: {}: expected some bytes, but got none", fmt::join(names, ", ")));
  return split_corpus(std::move(documents), test_share);
}

Corpus split_corpus(std::vector<std::string> documents, double test_share) {
  std::ranges::sort(documents);
  documents.erase(std::ranges::unique(documents).begin(), documents.end());
  size_t total = 0;
  for (const std::string& document : documents) total += document.size();
  if (total == 0) fail("text: expected some bytes, but got none");

  std::vector<std::string_view> parts;
  // A corpus without training data is not split, so its documents stay whole.
  const size_t most = test_share < 1 ? std::max<size_t>(1, total / kFewestParts) : total;
  for (const std::string& document : documents)
    std::ranges::copy(parts_of(document, most), std::back_inserter(parts));
  // The test parts are the first parts of a fixed shuffle. Parts keep their order in the text.
  const CounterRandom random(0, "split");
  std::vector<size_t> order(parts.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  for (size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random.below(n, n)]);

  std::vector<bool> tested(parts.size(), false);
  const auto wanted = static_cast<size_t>(test_share * static_cast<double>(total));
  size_t held_out = 0;
  for (const size_t part : order) {
    if (held_out >= wanted) break;
    tested[part] = true;
    held_out += parts[part].size();
  }

  Corpus corpus;
  corpus.documents = static_cast<int64_t>(documents.size());
  for (size_t n = 0; n < parts.size(); ++n) {
    (tested[n] ? corpus.test : corpus.train) += parts[n];
    if (tested[n]) corpus.test_ends.push_back(static_cast<int64_t>(corpus.test.size()));
  }
  return corpus;
}

std::vector<fs::path> default_text() {
  const fs::path docs = "/usr/share/doc";
  fs::path sources;  // only one Python version: two would share most of their text
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(docs, ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    const fs::path found = fs::canonical(entry.path() / "html" / "_sources", ignored);
    if (!ignored && found > sources) sources = found;
  }
  std::vector<fs::path> files;
  if (!sources.empty()) {
    for (const fs::path& file : files_of(sources))
      if (file.string().ends_with(".rst.txt")) files.push_back(file);
  }
  if (files.empty())
    fail(
        "text: expected the sources of Python's documentation below /usr/share/doc, but found "
        "none: install Debian's python3-doc, or give your own text with --text FILES");
  return files;
}

nlohmann::json identity(const Corpus& corpus) {
  const uint32_t crc = crc32(crc32(0, corpus.train), corpus.test);
  return {{"documents", corpus.documents},
          {"train_bytes", corpus.train.size()},
          {"test_bytes", corpus.test.size()},
          {"crc32", fmt::format("{:08x}", crc)}};
}

int64_t count_test_blocks(const Corpus& corpus, int64_t length) {
  return static_cast<int64_t>(test_places(corpus, length).size());
}

std::vector<std::string_view> test_blocks(const Corpus& corpus, int64_t length, int64_t blocks) {
  const std::vector<std::string_view> places = test_places(corpus, length);
  const auto there = static_cast<int64_t>(places.size());
  if (there < blocks)
    fail(fmt::format(
        "text: expected {} blocks of {} bytes in the documents held out for the test, but there "
        "are {}: give more text, hold out a larger share, or test fewer or shorter blocks",
        blocks, length + 1, there));
  std::vector<std::string_view> chosen;
  for (int64_t n = 0; n < blocks; ++n)
    chosen.push_back(places[static_cast<size_t>(n * there / blocks)]);
  return chosen;
}

std::string_view train_window(const Corpus& corpus, int64_t length, uint64_t seed, int64_t batch,
                              int64_t step, int64_t row) {
  const uint64_t bytes = bytes_to_train_on(corpus, length);
  const CounterRandom random(seed, "batches");
  const uint64_t begin =
      random.below(corpus.train.size() - bytes + 1, static_cast<uint64_t>(step * batch + row));
  return std::string_view(corpus.train).substr(begin, bytes);
}

std::string_view train_segment(const Corpus& corpus, int64_t length, uint64_t seed, int64_t batch,
                               int64_t step, int64_t row) {
  const uint64_t bytes = bytes_to_train_on(corpus, length);
  const uint64_t segments = (corpus.train.size() - 1) / (bytes - 1);
  const uint64_t first = CounterRandom(seed, "segments").below(segments, 0);
  const uint64_t apart = segments * static_cast<uint64_t>(row) / static_cast<uint64_t>(batch);
  const uint64_t segment = (first + apart + static_cast<uint64_t>(step)) % segments;
  return std::string_view(corpus.train).substr(segment * (bytes - 1), bytes);
}

void check_text(std::string_view bytes, const std::string& file) {
  Found nul, broken;
  for (size_t at = 0; at < bytes.size();) {
    at += plain_bytes(bytes, at);
    if (at == bytes.size()) break;
    const size_t length = bytes[at] == '\0' ? 0 : character_length(bytes, at);
    if (length == 0) (bytes[at] == '\0' ? nul : broken).add(at);
    at += length == 0 ? 1 : length;
  }
  const bool binary = nul.count > bytes.size() / kTextPerNul;
  if (!binary && broken.count <= bytes.size() / kTextPerBroken) return;
  const Found& found = binary ? nul : broken;
  fail(fmt::format(
      "{}: expected text in UTF-8, but got a file of {} bytes of which {} are {}, the first at "
      "offset {}{}",
      file, bytes.size(), found.count, binary ? "NUL" : "not UTF-8", found.first, hint(bytes)));
}

BigramLoss bigram_loss(std::string_view train, std::span<const std::string_view> blocks,
                       int64_t scored) {
  const Counts counts = counts_of(train);
  BigramLoss result;
  for (const std::string_view block : blocks) {
    double sum = 0;
    for (size_t n = block.size() - static_cast<size_t>(scored); n < block.size(); ++n)
      sum += counts.loss(index_of(block[n - 1]), index_of(block[n]));
    result.blocks.push_back(sum / static_cast<double>(scored));
    result.mean += result.blocks.back() / static_cast<double>(blocks.size());
  }
  return result;
}

}  // namespace sextant::lab
