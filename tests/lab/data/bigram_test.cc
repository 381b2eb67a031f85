#include "sextant/lab/data/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/lab/synthetic_text.h"

namespace sextant::lab {
namespace {

// On the last 4 bytes of 4 blocks of 17.
BigramLoss loss_of(const Corpus& corpus) {
  return bigram_loss(corpus.train, test_blocks(corpus, 16, 4), 4);
}

TEST(BigramLoss, IsOfTheLastBytesOfEachBlockByCountsOfTheTraining) {
  // After `a` follows `b` three times in four, and the tested bytes are `b` after `a`, `a` after b.
  Corpus corpus;
  corpus.train = "abababac";
  for (int n = 0; n < 100; ++n) corpus.test += "ab";
  corpus.test_ends = {static_cast<int64_t>(corpus.test.size())};
  const double count = 8 + 256;
  const double b_after_a = -std::log((3 + 4 / count) / 5),
               a_after_b = -std::log((3 + 5 / count) / 4);
  const BigramLoss loss = loss_of(corpus);
  ASSERT_EQ(loss.blocks.size(), 4);
  for (const double block : loss.blocks) EXPECT_NEAR(block, (b_after_a + a_after_b) / 2, 1e-12);
  EXPECT_NEAR(loss.mean, (b_after_a + a_after_b) / 2, 1e-12);
}

TEST(BigramLoss, IsBelowThatOfGuessingAndAboveZero) {
  const Corpus corpus = split_corpus(synthetic_documents(40, 1000), 0.1);
  const BigramLoss loss = loss_of(corpus);
  EXPECT_GT(loss.mean, 0.2);
  EXPECT_LT(loss.mean, std::log(27)) << "the text has fewer than 27 different bytes";
  EXPECT_LT(std::ranges::min(loss.blocks), std::ranges::max(loss.blocks));
}

}  // namespace
}  // namespace sextant::lab
