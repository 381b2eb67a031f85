// Text as bytes, split by document into training and test data.
//
// The split depends on the content of the documents and not on their paths: documents are sorted by
// content, and duplicates are dropped so that no document is in both parts. A document larger than
// a twentieth of the whole is cut into parts first, so a single long book can be split, too.
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
  std::string train, test;         // concatenated documents
  std::vector<int64_t> test_ends;  // end offset of each test document
  int64_t documents = 0;
};

// Reads files, and all files below folders. test_share is between 0 and 1; with 1 everything is
// test data and no document is cut. Throws Error if a file cannot be read or is not text
// (check_text()), or if there are no bytes.
Corpus read_corpus(std::span<const std::filesystem::path> paths, double test_share);
Corpus split_corpus(std::vector<std::string> documents, double test_share);

// The reST sources of Python's documentation as installed by Debian's python3-doc. Throws Error
// that says how to install them if they are missing.
std::vector<std::filesystem::path> default_text();

// Counts and a checksum, to compare corpora.
nlohmann::json identity(const Corpus& corpus);

// Returns `blocks` evenly spread blocks of length + 1 bytes, each inside one test document. The
// input is all but the last byte, the targets all but the first. Throws Error if there are too few.
std::vector<std::string_view> test_blocks(const Corpus& corpus, int64_t length, int64_t blocks);

// The number of such blocks.
int64_t count_test_blocks(const Corpus& corpus, int64_t length);

// The training sequence of row `row` in step `step`: length + 1 bytes at a random position, which
// depends only on the arguments, so a resumed training needs no other data state than its step.
std::string_view train_window(const Corpus& corpus, int64_t length, uint64_t seed, int64_t batch,
                              int64_t step, int64_t row);

// The training sequence for training with memory, in which each row continues with the next segment
// in the next step. The text is cut into segments of `length`; the first segment follows the last
// one, and the rows start evenly spread over the segments.
std::string_view train_segment(const Corpus& corpus, int64_t length, uint64_t seed, int64_t batch,
                               int64_t step, int64_t row);

// Rejects files that are not text: a model trained on an image or an archive learns nothing, but
// its losses look like results.

// Throws Error that names the file and the offset of the first bad byte if more than one byte in a
// thousand is NUL, or more than one in ten is not UTF-8. Text with a few invalid bytes passes, and
// so does Western European text in Latin-1.
void check_text(std::string_view bytes, const std::string& file);

// The loss of predicting each byte from the byte before it alone: a reference for models that have
// learned to use the order of their context.
//
//   p(y | x) = (c(x, y) + p(y)) / (c(x) + 1),   p(y) = (c(y) + 1) / (c + 256)
//
// The counts c are of the training bytes. A transformer without position encoding knows its current
// byte and little of the order of the earlier ones, so it comes near to this loss: with 800 000
// bytes of python3-doc it has 2.49 nats per byte, and the bigrams have 2.62.
struct BigramLoss {
  double mean = 0;                  // nats per byte
  std::vector<double> blocks = {};  // of each test block
};

// The loss of bigrams of the training bytes on the last `scored` bytes of each test block: those
// that the sliding loss of a survey is scored on, L/2.
BigramLoss bigram_loss(std::string_view train, std::span<const std::string_view> blocks,
                       int64_t scored);

}  // namespace sextant::lab
