// Operands that do not fit are named in the error, and nothing is written.
#include "sextant/attention/check_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class T>
View<T> view(std::vector<double>& data, int64_t batch, int64_t heads, int64_t rows,
             int64_t columns) {
  data.resize(static_cast<size_t>(batch * heads * rows * columns), 0.5);
  return {data.data(),    batch,   heads, rows, columns, heads * rows * columns,
          rows * columns, columns, 1};
}

// 2 batch entries, 4 query heads over 2 key heads, 3 queries at positions 2 .. 4, 5 keys at 0 .. 4,
// causal, with every operand present.
struct Case {
  std::vector<double> q, k, v, bias, query_bias, key_bias, table, value_table, out, lse, d_out, d_q;
  std::vector<int32_t> row_at = {0, 0, 1, 1, 2, 2, 2};
  std::vector<double> sink = {0, 0, 0, 0};
  std::vector<uint8_t> mask = std::vector<uint8_t>(15, 1);
  std::vector<KeyRange> key_ranges = {{0, 3}, {0, 4}, {0, 5}};
  std::vector<int64_t> rotary_positions = {0, 1, 2, 3, 4};
  Rotation rotation = {.pairs = {{.first = 0, .second = 2}, {.first = 1, .second = 3}}};
  Score<double> score;
  Attended<double> attended;
  ScoreGrad<double> grad;

  Case() {
    score.q = view<const double>(q, 2, 4, 3, 6);
    score.k = view<const double>(k, 2, 2, 5, 6);
    score.v = view<const double>(v, 2, 2, 5, 3);
    score.frames = {{.queries = 3, .query_position = 2, .keys = 5}};
    score.sweeps = {{.query = {&rotation, rotary_positions.data() + 2},
                     .key = {&rotation, rotary_positions.data()},
                     .key_ranges = key_ranges.data()}};
    score.diagonals = {.farthest = 4, .count = 7};
    score.bias = view<const double>(bias, 1, 4, 7, 1);
    score.on_query = view<const double>(table, 1, 1, 3, 6);
    score.on_key = score.on_query;
    score.row_at = {.on_query = row_at, .on_key = row_at, .on_value = row_at};
    score.on_value = view<const double>(value_table, 1, 1, 3, 3);
    score.query_bias = view<const double>(query_bias, 2, 4, 3, 7);
    score.key_bias = view<const double>(key_bias, 2, 4, 5, 1);
    score.sink = sink;
    score.mask = {mask.data(), 2, 4, 3, 5, 0, 0, 5, 1};
    attended = {view<double>(out, 2, 4, 3, 3), view<double>(lse, 2, 4, 3, 1)};
    grad.q = view<double>(d_q, 2, 4, 3, 6);
  }

  std::string message() {
    try {
      attend(score, attended, reference_backend(), serial_executor());
      attend_backward(score, {attended.out, as_const(attended.lse)},
                      view<const double>(d_out, 2, 4, 3, 3), grad, reference_backend(),
                      serial_executor());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  static View<const double> as_const(View<double> v) {
    return {v.data,         v.batch,       v.heads,      v.rows,         v.columns,
            v.batch_stride, v.head_stride, v.row_stride, v.column_stride};
  }
};

TEST(CheckScore, TakesWhatFits) { EXPECT_EQ(Case().message(), ""); }

struct Wrong {
  std::string name;
  std::function<void(Case&)> spoil;
  std::string field, got;
};

class CheckScoreWrong : public ::testing::TestWithParam<Wrong> {};

TEST_P(CheckScoreWrong, NamesTheOperandAndWritesNothing) {
  Case one;
  GetParam().spoil(one);
  EXPECT_THAT(one.message(),
              AllOf(HasSubstr(GetParam().field), HasSubstr("but got"), HasSubstr(GetParam().got)));
  EXPECT_THAT(one.out, ::testing::Each(0.5));
}

const std::vector<Wrong> kWrong = {
    {"KeyBatch", [](Case& c) { c.score.k.batch = 1; }, "k.batch", "got 1"},
    {"KeyColumns", [](Case& c) { c.score.k.columns = 5; }, "k.columns", "got 5"},
    {"ValueRows", [](Case& c) { c.score.v.rows = 4; }, "v.rows", "got 4"},
    {"Heads", [](Case& c) { c.score.q.heads = 3; }, "q.heads", "got 3"},
    {"KeyDtype", [](Case& c) { c.score.k.dtype = DType::kFloat32; }, "k.dtype", "another"},
    {"NoFrames", [](Case& c) { c.score.frames.clear(); }, "frames: expected at least one", "none"},
    {"NoSweeps", [](Case& c) { c.score.sweeps.clear(); }, "sweeps: expected at least one", "none"},
    {"NoData", [](Case& c) { c.score.q.data = nullptr; }, "q:", "null"},
    {"SoftcapBelowZero", [](Case& c) { c.score.softcap = -1; }, "softcap", "above 0"},
    {"SoftcapInfinite", [](Case& c) { c.score.softcap = std::numeric_limits<double>::infinity(); },
     "softcap", "finite"},
    {"DropoutOfAll", [](Case& c) { c.score.dropout.probability = 1; }, "dropout.probability",
     "below 1"},
    {"DropoutBelowZero", [](Case& c) { c.score.dropout.probability = -0.1; }, "dropout.probability",
     "at least 0"},
    {"DropoutNan",
     [](Case& c) { c.score.dropout.probability = std::numeric_limits<double>::quiet_NaN(); },
     "dropout.probability", "below 1"},
    {"Scale", [](Case& c) { c.score.scale = std::numeric_limits<double>::quiet_NaN(); }, "scale",
     "nan"},
    {"FrameBatch", [](Case& c) { c.score.frames[0].batch = 2; }, "frames[0].batch", "got 2"},
    {"FrameRows", [](Case& c) { c.score.frames[0].queries = 4; }, "frames[0].queries", "got 4"},
    {"FramePosition", [](Case& c) { c.score.frames[0].key_position = int64_t{1} << 60; },
     "frames[0].key_position", "got 1152921504606846976"},
    {"FramesOverlap",
     [](Case& c) { c.score.frames.push_back({.batch = 1, .query_row = 2, .queries = 1}); },
     "frames", "row 2"},
    {"Runs", [](Case& c) { c.score.sweeps[0].key_ranges = nullptr; }, "sweeps[0].key_ranges",
     "null"},
    {"SweepsOverlap", [](Case& c) { c.score.sweeps.push_back(c.score.sweeps[0]); }, "sweeps",
     "row 0"},
    {"PairColumn", [](Case& c) { c.rotation.pairs[1].second = 6; }, "query.rotation.pairs[1]",
     "got 6"},
    {"PairTwice", [](Case& c) { c.rotation.pairs[1].second = 2; }, "query.rotation.pairs[1]",
     "got 2"},
    {"Times", [](Case& c) { c.score.sweeps[0].key.rotary_positions = nullptr; },
     "sweeps[0].key.rotary_positions", "null"},
    {"Offset",
     [](Case& c) {
       static const std::array<Turns, 1> offset = {};
       c.score.sweeps[0].query.offset = offset;
     },
     "query.offset", "got 1"},
    {"Growth",
     [](Case& c) {
       static const Rotation other = {.pairs = {{.first = 0, .second = 2, .growth = -0.1}}};
       c.score.sweeps[0].query.rotation = &other;
     },
     "sweeps[0]", "different"},
    {"Diagonals", [](Case& c) { c.score.diagonals.farthest = 3; }, "diagonals", "3"},
    {"BiasHeads", [](Case& c) { c.score.bias.heads = 2; }, "bias.heads", "got 2"},
    {"BiasRows", [](Case& c) { c.score.bias.rows = 6; }, "bias.rows", "got 6"},
    {"TableMap", [](Case& c) { c.row_at[3] = 3; }, "row_at.on_query", "got 3"},
    {"TableMapLength",
     [](Case& c) {
       c.row_at.pop_back();
       c.score.row_at.on_query = c.row_at;
     },
     "row_at.on_query", "got 6"},
    {"TableColumns", [](Case& c) { c.score.on_value.columns = 2; }, "on_value.columns", "got 2"},
    {"BiasBatch", [](Case& c) { c.score.bias.batch = 2; }, "bias.batch", "got 2"},
    {"QueryBiasRows", [](Case& c) { c.score.query_bias.rows = 4; }, "query_bias.rows", "got 4"},
    {"KeyBiasRows", [](Case& c) { c.score.key_bias.rows = 4; }, "key_bias.rows", "got 4"},
    {"QueryBiasColumns", [](Case& c) { c.score.query_bias.columns = 6; }, "query_bias.columns",
     "got 6"},
    {"Sink",
     [](Case& c) {
       c.sink.pop_back();
       c.score.sink = c.sink;
     },
     "sink", "got 3"},
    {"Mask", [](Case& c) { c.score.mask.rows = 2; }, "mask.rows", "got 2"},
    {"Out", [](Case& c) { c.attended.out.columns = 4; }, "out.columns", "got 4"},
};

INSTANTIATE_TEST_SUITE_P(Operands, CheckScoreWrong, ::testing::ValuesIn(kWrong),
                         [](const auto& info) { return info.param.name; });

TEST(Backends, AreListedAndNamed) {
  EXPECT_EQ(&backend("reference"), &reference_backend());
  EXPECT_EQ(&backend("cpu"), &cpu_backend());
  try {
    backend("tpu");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("reference, cpu"), HasSubstr("tpu")));
  }
}

TEST(Backends, OfGpusAreListedWithTheReasonWhyTheyCannotRun) {
  EXPECT_EQ(why_not(cpu_backend()), "");
  for (const Backend* cuda : {&backend("cuda"), &backend("cuda-float32")}) {
    EXPECT_EQ(cuda->device, Device::kCuda);
    EXPECT_EQ(why_not(*cuda), why_no_cuda());
    if (why_no_cuda().empty()) GTEST_SKIP() << "a GPU can be used";
    EXPECT_THAT([&] { attend(Score<float>(), {}, *cuda); },
                ThrowsMessage<Error>(HasSubstr(why_no_cuda())));
  }
}

}  // namespace
}  // namespace sextant
