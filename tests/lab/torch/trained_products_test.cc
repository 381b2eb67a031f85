#include "sextant/lab/torch/probe_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

constexpr int64_t kLength = 16;

struct Products {
  PositionProducts shares;
  Pictures pictures;
};

// Of a model with the weights of seed 0; training began with those of seed 1.
Products products_of(const std::string& name, bool causal = true) {
  DecoderOptions model = tiny_settings().model;
  model.causal = causal;
  const ModelShape shape = model_shape(model, kLength);
  const auto method = [&] { return make_method(name, shape, nlohmann::json::object()); };
  const Decoder decoder(model, method(), 0), untrained(model, method(), 1);
  Products found;
  found.shares = trained_products(decoder, untrained, *method(), shape, &found.pictures);
  return found;
}

TEST(TrainedProducts, OfSinusoidsAreByDistanceWithoutW) {
  for (const bool causal : {true, false}) {
    const Products found = products_of("sinusoidal", causal);
    EXPECT_NEAR(found.shares.plain, 1, 1e-9);
    const DecoderOptions model = tiny_settings().model;
    ASSERT_EQ(found.shares.heads.size(), static_cast<size_t>(model.layers * model.heads));
    for (const HeadProducts& head : found.shares.heads) {
      EXPECT_LT(head.trained, 0.9);
      EXPECT_LT(head.untrained, 0.9);
      EXPECT_NE(head.trained, head.untrained);
      EXPECT_GT(head.trained, 0);
    }
  }
}

// A tile has 16 positions, and a gap lies between two tiles.
TEST(TrainedProducts, AreDrawnAsTiles) {
  const Pictures pictures = products_of("sinusoidal").pictures;
  const DecoderOptions model = tiny_settings().model;
  EXPECT_EQ(pictures.product_step, 1);
  ASSERT_EQ(pictures.products.size(), static_cast<size_t>(model.layers * (kLength + 1) - 1));
  for (const std::vector<double>& row : pictures.products) {
    ASSERT_EQ(row.size(), static_cast<size_t>(model.heads * (kLength + 1) - 1));
    EXPECT_TRUE(std::isnan(row[kLength]));
  }
  double sum = 0;
  for (int64_t n = 0; n < kLength * kLength; ++n) {
    sum += pictures.products[static_cast<size_t>(n / kLength)][static_cast<size_t>(n % kLength)];
  }
  EXPECT_NEAR(sum / (kLength * kLength), 0, 0.01);
}

TEST(TrainedProducts, AreNoneWhereNothingIsAdded) {
  const Products found = products_of("rope");
  EXPECT_TRUE(found.shares.heads.empty());
  EXPECT_TRUE(found.pictures.products.empty());
}

}  // namespace
}  // namespace sextant::lab
