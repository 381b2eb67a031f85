// Text as bytes, split by document into what is trained on and what is tested on.
//
// The split is a function of what the documents say, not of where they lie: they are sorted by
// content and those that occur twice are dropped (else a text could be trained on and tested on). A
// document above a twentieth of the whole is cut into parts first, so one long book can be split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::lab {

struct Corpus {
  std::string train, test;         // documents one after the other
  std::vector<int64_t> test_ends;  // where each test document ends
  int64_t documents = 0;
};

// test_share: 0 to 1; 1: all is tested on, and no document is cut.
// Files, and the files below folders. Throws Error if one cannot be read or is not text
// (check_text.h), or if all is empty.
Corpus read_corpus(std::span<const std::filesystem::path> paths, double test_share);
Corpus split_corpus(std::vector<std::string> documents, double test_share);

// The reST sources of Python's documentation where Debian's python3-doc puts them. Throws Error
// that says what to do if it is not installed.
std::vector<std::filesystem::path> default_text();

// Counts and a checksum: whether two corpora are the same.
nlohmann::json identity(const Corpus& corpus);

// `blocks` stretches of length + 1 bytes, each inside one test document, evenly spread; input is
// all but the last byte, targets all but the first. Throws Error if there are not so many.
std::vector<std::string_view> test_blocks(const Corpus& corpus, int64_t length, int64_t blocks);

// How many such stretches there are.
int64_t count_test_blocks(const Corpus& corpus, int64_t length);

// The training text of row `row` of step `step`: length + 1 bytes. The data's position is the step.
std::string_view train_window(const Corpus& corpus, int64_t length, uint64_t seed, int64_t batch,
                              int64_t step, int64_t row);

// The same for a training with memory, in which a row reads on, one segment a step: the text is cut
// into segments of `length`, after the last comes the first, and rows begin evenly spread over
// them.
std::string_view train_segment(const Corpus& corpus, int64_t length, uint64_t seed, int64_t batch,
                               int64_t step, int64_t row);

}  // namespace sextant::lab
