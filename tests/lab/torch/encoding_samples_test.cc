#include "sextant/lab/torch/probe_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

Pictures samples_of(const std::string& name,
                    const nlohmann::json& options = nlohmann::json::object(),
                    int64_t key_heads = 2) {
  DecoderOptions model = tiny_settings().model;
  model.key_heads = key_heads;
  const ModelShape shape = model_shape(model, 16);
  const auto method = [&] { return make_method(name, shape, options); };
  const Decoder decoder(model, method(), 0);
  return pictures_of(decoder, *method(), shape, 128);
}

// The slopes of two heads are 1/16 and 1/256.
TEST(Pictures, OfABiasAreItsSlopes) {
  const Pictures pictures = samples_of("alibi");
  ASSERT_EQ(pictures.scores.size(), 2);
  EXPECT_EQ(pictures.distances.front(), 0);
  EXPECT_EQ(pictures.distances[63], 63);
  EXPECT_EQ(pictures.distances.back(), 127);
  for (size_t n = 0; n < pictures.distances.size(); ++n) {
    const auto distance = static_cast<double>(pictures.distances[n]);
    EXPECT_NEAR(pictures.scores[0][n] - pictures.scores[0][0], -distance / 16, 2e-4);
    EXPECT_NEAR(pictures.scores[1][n] - pictures.scores[1][0], -distance / 256, 2e-4);
  }
  EXPECT_TRUE(pictures.vectors.empty());
}

// Two query heads that share a key head get the same scores.
TEST(Pictures, OfAWindowEndAtIt) {
  const Pictures pictures = samples_of("window", {{"window", 4}}, /*key_heads=*/1);
  ASSERT_GT(pictures.distances.size(), 4);
  for (size_t n = 0; n < pictures.distances.size(); ++n) {
    EXPECT_EQ(std::isnan(pictures.scores[0][n]), pictures.distances[n] >= 4);
    if (pictures.distances[n] < 4) {
      EXPECT_EQ(pictures.scores[0][n], pictures.scores[1][n]);
    }
  }
}

TEST(Pictures, OfVectorsAreTheyAndTheirCosines) {
  const Pictures pictures = samples_of("sinusoidal");
  EXPECT_TRUE(pictures.scores.empty());
  EXPECT_EQ(pictures.step, 1);  // 32 positions, twice the training length
  ASSERT_EQ(pictures.vectors.size(), 32);
  ASSERT_EQ(pictures.vectors[0].size(), 16);
  for (size_t row = 0; row < 32; ++row) {
    EXPECT_NEAR(pictures.cosines[row][row], 1, 1e-3);
    EXPECT_NEAR(pictures.cosines[row][0], pictures.cosines[0][row], 1e-9);
    if (row > 0) {
      EXPECT_NEAR(pictures.cosines[row][row - 1], pictures.cosines[1][0], 2e-4) << "by distance";
    }
  }
}

}  // namespace
}  // namespace sextant::lab
