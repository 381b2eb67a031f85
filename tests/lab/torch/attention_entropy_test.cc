#include "sextant/lab/torch/attention_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

// The entropies of a decoder whose queries and keys are all zero: all visible keys have equal
// weights.
std::vector<AttentionAt> of_flat_scores(const std::string& name, const nlohmann::json& options,
                                        Pictures* pictures = nullptr) {
  const Settings settings = tiny_settings();
  const auto method = [&] { return make_method(name, model_shape(settings.model, 16), options); };
  Decoder decoder(settings.model, method(), 0);
  for (const NamedParameter& parameter : decoder.parameters()) {
    if (parameter.name.ends_with("attention.in")) parameter.value.detach().zero_();
  }
  const std::string text(65, 'a');
  const std::vector<std::string_view> blocks{text, text};
  return attention_entropy(decoder, method(), blocks, settings.test, 16, pictures);
}

TEST(SpreadOfAttention, OfFlatScoresIsThatOfAllThatIsSeen) {
  const std::vector<AttentionAt> all = of_flat_scores("none", nlohmann::json::object());
  ASSERT_EQ(all.size(), 3);  // lengths, of one layer
  for (const AttentionAt& at : all) {
    // The last 8 queries: query i sees i + 1 keys at distances 0 to i.
    double entropy = 0, span = 0;
    for (int64_t i = at.length - 8; i < at.length; ++i) {
      entropy += std::log(static_cast<double>(i + 1)) / 8;
      span += static_cast<double>(i) / 2 / 8;
    }
    EXPECT_NEAR(at.entropy, entropy, 1e-5) << at.length;
    EXPECT_NEAR(at.span, span, 1e-4) << at.length;
  }
}

TEST(SpreadOfAttention, OfAWindowStaysWithinIt) {
  const std::vector<AttentionAt> all = of_flat_scores("window", {{"window", 4}});
  ASSERT_EQ(all.size(), 3);
  for (const AttentionAt& at : all) {
    EXPECT_NEAR(at.entropy, std::log(4.0), 1e-5);
    EXPECT_NEAR(at.span, 1.5, 1e-5);
    ASSERT_GT(at.at_distance.size(), 3);
    EXPECT_NEAR(at.at_distance[0], 0.25, 1e-5);  // the query itself
    EXPECT_NEAR(at.at_distance[1], 0.25, 1e-5);  // distance 1
    EXPECT_NEAR(at.at_distance[2], 0.5, 1e-5);   // distances 2 and 3
    EXPECT_EQ(at.at_distance[3], 0);
  }
}

TEST(SpreadOfAttention, DrawsTheLongestText) {
  Pictures pictures;
  of_flat_scores("none", nlohmann::json::object(), &pictures);
  EXPECT_EQ(pictures.cell, 1);  // 64 bytes in 64 cells
  ASSERT_EQ(pictures.attention.size(), 64);
  for (size_t query = 0; query < 64; ++query) {
    ASSERT_EQ(pictures.attention[query].size(), query + 1);
    for (const double share : pictures.attention[query]) {
      EXPECT_NEAR(share, 1.0 / static_cast<double>(query + 1), 1e-5);
    }
  }
}

TEST(SpreadOfAttention, OfSteepSlopesIsNarrow) {
  // ALiBi's slopes for two heads are 1/16 and 1/256: a geometric series over distances, cut at the
  // beginning of the text.
  const std::vector<AttentionAt> all = of_flat_scores("alibi", nlohmann::json::object());
  ASSERT_EQ(all.size(), 3);
  for (const AttentionAt& at : all) {
    double expected = 0;
    for (const double slope : {1.0 / 16, 1.0 / 256}) {
      for (int64_t i = at.length - 8; i < at.length; ++i) {
        double sum = 0, distances = 0;
        for (int64_t d = 0; d <= i; ++d) {
          const double p = std::exp(-slope * static_cast<double>(d));
          sum += p;
          distances += p * static_cast<double>(d);
        }
        expected += distances / sum / 8 / 2;
      }
    }
    EXPECT_NEAR(at.span, expected, 1e-3) << at.length;
  }
}

}  // namespace
}  // namespace sextant::lab
