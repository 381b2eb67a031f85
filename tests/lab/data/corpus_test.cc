#include "sextant/lab/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/base/error.h"
#include "tests/lab/synthetic_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Corpus, KeepsEveryByteOnce) {
  std::vector<std::string> documents = synthetic_documents(40, 1000);
  const Corpus corpus = split_corpus(documents, 0.1);
  EXPECT_EQ(corpus.train.size() + corpus.test.size(), 40'000);
  EXPECT_EQ(corpus.test.size(), 4'000);
  ASSERT_FALSE(documents.empty());
  for (const std::string& document : documents) {
    const bool trained = corpus.train.find(document) != std::string::npos;
    const bool tested = corpus.test.find(document) != std::string::npos;
    EXPECT_NE(trained, tested);
  }
}

TEST(Corpus, IsTheSameInAnyOrderAndWithCopies) {
  std::vector<std::string> documents = synthetic_documents(40, 1000);
  const Corpus corpus = split_corpus(documents, 0.1);
  std::ranges::reverse(documents);
  documents.push_back(documents[7]);
  const Corpus again = split_corpus(documents, 0.1);
  EXPECT_EQ(again.train, corpus.train);
  EXPECT_EQ(again.test, corpus.test);
  EXPECT_EQ(identity(again), identity(corpus));
}

TEST(Corpus, OneBookIsSplitToo) {
  const Corpus corpus = split_corpus({synthetic_document(1, 100'000)}, 0.05);
  EXPECT_EQ(corpus.documents, 1);
  EXPECT_EQ(corpus.test.size(), 5'000);
  EXPECT_EQ(corpus.train.size(), 95'000);
}

TEST(Corpus, IdentityKnowsAChangedByte) {
  std::vector<std::string> documents = synthetic_documents(40, 1000);
  const auto before = identity(split_corpus(documents, 0.1));
  documents[3][500] = '#';
  EXPECT_NE(identity(split_corpus(documents, 0.1)), before);
}

TEST(Corpus, ReadsFilesAndFolders) {
  const TemporaryFolder folder;
  write_text(folder / "one.txt", "one");
  write_text(folder / "more/two.txt", "two");
  const std::vector<std::filesystem::path> paths{folder / "one.txt", folder / "more"};
  EXPECT_EQ(read_corpus(paths, 0.1).documents, 2);
}

TEST(Corpus, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> missing{folder / "missing.txt"};
  EXPECT_THAT(
      [&] { read_corpus(missing, 0.1); },
      ThrowsMessage<Error>(HasSubstr("missing.txt: cannot open it: No such file or directory")));
  EXPECT_THAT(
      [&] {
        split_corpus({"", ""}, 0.1);
      },
      ThrowsMessage<Error>(HasSubstr("expected some bytes, but got none")));
}

TEST(TestBlocks, LieWithinOneDocumentAndApart) {
  // The byte identifies its document.
  std::vector<std::string> documents;
  for (char c = 'a'; c <= 'z'; ++c) documents.push_back(std::string(350, c));
  const Corpus corpus = split_corpus(documents, 0.5);
  const std::vector<std::string_view> blocks = test_blocks(corpus, 100, 20);
  ASSERT_EQ(blocks.size(), 20);
  for (size_t n = 0; n < blocks.size(); ++n) {
    EXPECT_EQ(blocks[n].size(), 101);
    EXPECT_EQ(blocks[n], std::string(101, blocks[n][0]));
    // Each target (all bytes of a block but the first) is scored once.
    if (n > 0) {
      EXPECT_GE(blocks[n].data() - blocks[n - 1].data(), 100);
    }
  }
}

TEST(TestBlocks, SayHowManyThereAre) {
  const Corpus corpus = split_corpus(synthetic_documents(40, 1000), 0.1);
  EXPECT_EQ(test_blocks(corpus, 500, 4).size(), 4);
  EXPECT_THAT([&] { test_blocks(corpus, 500, 5); },
              ThrowsMessage<Error>(HasSubstr("expected 5 blocks of 501 bytes in the documents held "
                                             "out for the test, but there are 4")));
}

TEST(TrainWindows, DependOnSeedAndStepOnly) {
  const Corpus corpus = split_corpus(synthetic_documents(40, 1000), 0.1);
  std::set<const char*> starts;
  for (int64_t step = 0; step < 50; ++step) {
    for (int64_t row = 0; row < 4; ++row) {
      const std::string_view window = train_window(corpus, 32, 5, 4, step, row);
      EXPECT_EQ(window.size(), 33);
      EXPECT_GE(window.data(), corpus.train.data());
      EXPECT_LE(window.data() + window.size(), corpus.train.data() + corpus.train.size());
      EXPECT_EQ(window.data(), train_window(corpus, 32, 5, 4, step, row).data());
      starts.insert(window.data());
    }
  }
  EXPECT_GT(starts.size(), 190);
  EXPECT_NE(train_window(corpus, 32, 5, 4, 0, 0).data(),
            train_window(corpus, 32, 6, 4, 0, 0).data());
}

TEST(TrainWindows, MayBeTheWholeText) {
  const Corpus corpus{.train = "0123456789", .test = "", .test_ends = {}};
  EXPECT_EQ(train_window(corpus, 9, 0, 1, 0, 0), corpus.train);
  EXPECT_THAT(
      [&] { train_window(corpus, 10, 0, 1, 0, 0); },
      ThrowsMessage<Error>(HasSubstr("expected at least 11 bytes to train on, but got 10")));
}

TEST(TrainSegment, ARowReadsOnAndRowsBeginApart) {
  const Corpus corpus = split_corpus(synthetic_documents(40, 500), 0.1);
  constexpr int64_t kSegment = 16, kBatch = 4;
  const auto segments = static_cast<int64_t>(corpus.train.size() - 1) / kSegment;
  const auto begins = [&](int64_t step, int64_t row) {
    const std::string_view text = train_segment(corpus, kSegment, /*seed=*/3, kBatch, step, row);
    EXPECT_EQ(text.size(), kSegment + 1);
    return static_cast<int64_t>(text.data() - corpus.train.data());
  };
  std::set<int64_t> seen;
  for (int64_t step = 0; step < segments; ++step) {
    seen.insert(begins(step, 0));
    const bool wraps = begins(step, 1) == (segments - 1) * kSegment;
    EXPECT_EQ(begins(step + 1, 1), wraps ? 0 : begins(step, 1) + kSegment);
  }
  EXPECT_EQ(seen.size(), segments);  // the whole text
  const int64_t apart = (begins(0, 1) - begins(0, 0) + segments * kSegment) % (segments * kSegment);
  EXPECT_EQ(apart, segments / kBatch * kSegment);
  EXPECT_NE(begins(0, 0),
            train_segment(corpus, kSegment, /*seed=*/4, kBatch, 0, 0).data() - corpus.train.data());
}

}  // namespace
}  // namespace sextant::lab
