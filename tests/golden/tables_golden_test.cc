// Compares the mathematics of positions with tables of official implementations.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "sextant/position/buckets.h"
#include "sextant/position/sinusoid.h"
#include "sextant/position/slopes.h"
#include "sextant/position/spectrum.h"
#include "tests/attention/problem.h"
#include "tests/golden/golden.h"

namespace sextant::golden {
namespace {

// The array is [heads, heads]; row n holds the slopes for n heads.
Doubles slopes_of(const Golden& file, const std::string& array, int64_t heads) {
  const Doubles all = file.numbers(array);
  const auto first = all.begin() + heads * file.shape(array)[1];
  return {first, first + heads};
}

TEST(TablesGolden, SlopesAreThoseOfTheAuthorsForAnyHeadCount) {
  const Golden file("alibi_slopes");
  const int64_t most = file.shape("slopes")[1];
  ASSERT_GE(most, 128);
  for (int64_t heads = 1; heads <= most; ++heads) {
    SCOPED_TRACE(heads);
    const Doubles slopes = alibi_slopes(heads);
    EXPECT_EQ(difference("fairseq", slopes, slopes_of(file, "slopes", heads), 1e-15), "");
    EXPECT_EQ(difference("ggml", slopes, slopes_of(file, "slopes_ggml", heads), 1e-15), "");
    // The next two are float32.
    EXPECT_EQ(difference("BLOOM", slopes, slopes_of(file, "slopes_bloom", heads), 2e-7), "");
    EXPECT_EQ(difference("MPT", slopes, slopes_of(file, "slopes_mpt_max8", heads), 2e-7), "");
    EXPECT_EQ(difference("MPT, 16", alibi_slopes(heads, 16),
                         slopes_of(file, "slopes_mpt_max16", heads), 2e-7),
              "");
  }
}

TEST(TablesGolden, T5BucketsAreThoseOfHuggingFace) {
  const Golden file("t5_bucket_tables");
  const auto keys_before = file.integers("relative_position");  // key - query
  const struct {
    int64_t buckets, max_distance;
  } sizes[] = {{32, 128}, {32, 256}, {16, 64}, {8, 20}, {64, 512}, {320, 800}};
  for (const auto& [buckets, max_distance] : sizes) {
    for (const bool bidirectional : {true, false}) {
      const T5Buckets map(
          {.buckets = buckets, .max_distance = max_distance, .bidirectional = bidirectional});
      const std::string name = std::string(bidirectional ? "bi" : "causal") + "_nb" +
                               std::to_string(buckets) + "_md" + std::to_string(max_distance);
      std::vector<int64_t> got;
      for (const int64_t relative : keys_before) got.push_back(map.bucket(-relative));
      EXPECT_EQ(got, file.integers("bucket_" + name)) << name;
      EXPECT_EQ(got, file.integers("exact_" + name)) << name;
    }
  }
}

TEST(TablesGolden, DebertaRowsAreThoseOfBothCodes) {
  const Golden file("deberta_log_bucket");
  using Flavour = DebertaBuckets::Flavour;
  const struct {
    int64_t buckets, max_positions;
  } sizes[] = {{256, 512}, {8, 16}, {32, 128}, {64, 512}, {128, 512}};
  for (const auto& [buckets, max_positions] : sizes) {
    const std::string size = "_b" + std::to_string(buckets) + "_m" + std::to_string(max_positions);
    for (const auto& [flavour, name] :
         {std::pair{Flavour::kHuggingFace, "row_hf"}, std::pair{Flavour::kMicrosoft, "row_ms"}}) {
      const DebertaBuckets map(
          {.buckets = buckets, .max_positions = max_positions, .flavour = flavour});
      std::vector<int64_t> got;
      for (const int64_t distance : file.integers("rel" + size)) got.push_back(map.row(distance));
      EXPECT_EQ(got, file.integers(name + size)) << name << size;
    }
  }
}

class SinusoidGolden : public testing::Test {
 protected:
  void expect_table(const std::string& array, SinusoidOptions options, int64_t first = 0) const {
    options.width = file_.shape(array)[1];
    const Doubles rows = Sinusoid(options).rows(first, file_.shape(array)[0]);
    EXPECT_EQ(difference(array, rows, file_.numbers(array), 1e-14), "");
  }

  const Golden file_{"sinusoidal_tables"};
};

TEST_F(SinusoidGolden, LayoutsAreThoseOfTheCodesTheyComeFrom) {
  for (const char* width : {"d2", "d6", "d8", "d32"}) {
    const std::string suffix = std::string("_") + width;
    expect_table("interleaved" + suffix, {});
    expect_table("concat_txl" + suffix, {.layout = SinusoidLayout::kConcatenated});
    expect_table("t2t" + suffix, {.layout = SinusoidLayout::kTensor2Tensor});
    if (suffix == "_d2") continue;  // fairseq divides by zero here
    expect_table("fairseq_padidx1" + suffix,
                 {.layout = SinusoidLayout::kTensor2Tensor, .padding_position = 1});
  }
}

TEST_F(SinusoidGolden, OddWidthsAndOtherTimescalesToo) {
  for (const char* width : {"d5", "d7"}) {
    expect_table(std::string("t2t_") + width, {.layout = SinusoidLayout::kTensor2Tensor});
  }
  expect_table("interleaved_d8_base500", {.max_timescale = 500});
  expect_table(
      "t2t_d8_min2_max100",
      {.layout = SinusoidLayout::kTensor2Tensor, .max_timescale = 100, .min_timescale = 2});
  expect_table("t2t_d8_start5_len4", {.layout = SinusoidLayout::kTensor2Tensor}, 5);
}

TEST_F(SinusoidGolden, RowsAreRightAtAnyPosition) {
  const Doubles rows = Sinusoid({.width = 8}).rows(file_.integers("large_positions"));
  EXPECT_EQ(difference("large", rows, file_.numbers("large_interleaved_d8_exact"), 1e-15), "");
}

TEST_F(SinusoidGolden, PaddingGetsZerosAndRealTokensCountOn) {
  const auto tokens = file_.integers("fairseq_mask_tokens");
  const int64_t length = file_.shape("fairseq_mask_tokens")[1];
  Doubles rows;
  for (size_t first = 0; first < tokens.size(); first += static_cast<size_t>(length)) {
    const auto text = std::span(tokens).subspan(first, static_cast<size_t>(length));
    const Doubles of_text =
        Sinusoid({.width = 8, .layout = SinusoidLayout::kTensor2Tensor, .padding_position = 0})
            .rows(fairseq_positions(text, 0));
    rows.insert(rows.end(), of_text.begin(), of_text.end());
  }
  // The official module keeps its table in float32.
  EXPECT_EQ(difference("fairseq", rows, file_.numbers("fairseq_mask_out_d8"), 0x1p-24), "");
}

// The file's cosines and sines are by [base, position, pair].
TEST(TablesGolden, PhasesAreExactToPosition2To40) {
  const Golden file("rope_phase_u64");
  std::vector<uint64_t> rounded;
  Doubles cosines, sines;
  for (const double base : file.meta().at("bases").get<Doubles>()) {
    const Rotation turns =
        rotation(rotary({.dim = file.meta().at("rotary_dim").get<int64_t>(), .base = base}));
    for (const auto& pair : turns.pairs) {
      rounded.push_back(pair.frequency.high + (pair.frequency.low >> 63));
    }
    for (const uint64_t position : file.words("positions")) {
      for (const auto& pair : turns.pairs) {
        const CosSin angle = cos_sin(pair.frequency * static_cast<int64_t>(position));
        cosines.push_back(angle.cos);
        sines.push_back(angle.sin);
      }
    }
  }
  EXPECT_EQ(rounded, file.words("turn_u64"));
  EXPECT_EQ(difference("cos", cosines, file.numbers("cos"), 1e-15), "");
  EXPECT_EQ(difference("sin", sines, file.numbers("sin"), 1e-15), "");
}

// x w, split into heads: [rows, width], w [heads * columns, width] -> [1, heads, rows, columns].
oracle::Tensor<double> projected(const Doubles& x, const Doubles& w, int64_t width, int64_t heads) {
  const auto rows = static_cast<int64_t>(x.size()) / width;
  oracle::Tensor<double> y(1, heads, rows, static_cast<int64_t>(w.size()) / width / heads);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t c = 0; c < y.columns; ++c) {
        for (int64_t n = 0; n < width; ++n) {
          y(0, h, i, c) += x[static_cast<size_t>(i * width + n)] *
                           w[static_cast<size_t>((h * y.columns + c) * width + n)];
        }
      }
    }
  }
  return y;
}

TEST(TablesGolden, InterleavedAndHalfSplitWeightsGiveTheSameScores) {
  const Golden file("rope_layout_permutation");
  const Doubles x = file.numbers("x");
  const auto& scores_shape = file.shape("scores_interleaved");
  const int64_t width = file.shape("x")[1], rows = file.shape("x")[0], heads = scores_shape[1];
  const auto expect_scores = [&](const std::string& suffix, Pairing pairing,
                                 const std::string& scores) {
    oracle::Problem<double> p;
    p.q = projected(x, file.numbers("Wq" + suffix), width, heads);
    p.k = projected(x, file.numbers("Wk" + suffix), width, heads);
    p.v = p.k;
    oracle::place_plainly(p, 0, oracle::whole_ranges(rows, rows));
    p.sweeps[0].rotation = rotation(rotary({.dim = p.q.columns, .pairing = pairing}));
    p.sweeps[0].query_rotary_positions = p.sweeps[0].key_rotary_positions = file.integers("pos");
    const auto weights = oracle::probabilities(p.score(), reference_backend());
    const auto lse = oracle::attend(p.score(), reference_backend()).lse;
    Doubles got;
    for (size_t n = 0; n < weights.data.size(); ++n) {
      got.push_back(std::log(weights.data[n]) + lse.data[n / static_cast<size_t>(rows)]);
    }
    EXPECT_EQ(difference(scores, got, file.numbers(scores), 1e-12), "");
  };
  expect_scores("", Pairing::kInterleaved, "scores_interleaved");
  expect_scores("_half", Pairing::kHalfSplit, "scores_half_permuted");
  expect_scores("", Pairing::kHalfSplit, "scores_half_unpermuted");  // unpermuted weights
}

}  // namespace
}  // namespace sextant::golden
