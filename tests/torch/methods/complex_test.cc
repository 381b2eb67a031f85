#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using nlohmann::json;

constexpr int64_t kWords = 5, kHalf = kSmallShape.width / 2;

Layout layout() {
  return {.batch = 2,
          .queries = 4,
          .keys = 7,
          .first_query = 3,
          .token_ids = at::tensor({0, 3, 3, 1, 4, 0, 2, 2}, at::kLong).view({2, 4})};
}

// All combinations of the options by which token ids share amplitudes, frequencies and phases.
std::vector<json> sharing_schemes() {
  std::vector<json> schemes;
  for (const char* amplitude : {"input", "word"})
    for (const char* frequency : {"component", "word", "word-and-component"})
      for (const char* phase : {"none", "component", "word", "word-and-component"}) {
        const bool apart = amplitude == std::string("word") ||
                           frequency != std::string("component") ||
                           std::string(phase).starts_with("word");
        schemes.push_back({{"amplitude", amplitude},
                           {"frequency", frequency},
                           {"phase", phase},
                           {"vocabulary", apart ? json(kWords) : json()}});
      }
  return schemes;
}

std::unique_ptr<Method> complex_of(const json& options) {
  return make_method("complex", kSmallShape, options);
}

// The values of the next table for each row of the layout, [2, 4, kHalf]; zeros if there is no
// table.
at::Tensor of_rows(const json& shared, const Tensors& tables, size_t& next) {
  if (shared == "none") return at::zeros({2, 4, kHalf}, at::kDouble);
  const at::Tensor table = tables[next++];
  const at::Tensor of_all = table.dim() == 1 ? table.expand({kWords, kHalf}) : table;
  return of_all.index({layout().token_ids}).expand({2, 4, kHalf});
}

TEST(Complex, TurnsEachWordByItsOwnFrequencyAndPhase) {
  const at::Tensor x = normal({2, 4, kSmallShape.width});
  const at::Tensor rotary_positions =
      at::arange(4, 8, at::kDouble).unsqueeze(1);  // positions count from 1; 3 tokens precede
  const auto schemes = sharing_schemes();
  EXPECT_EQ(schemes.size(), 24);
  for (const json& options : schemes) {
    const auto method = complex_of(options);
    const Tensors tables = random_parameters(*method);
    size_t next = 0;
    const auto halves = x.chunk(2, 2);
    const at::Tensor amplitude =
        options["amplitude"] == "input"
            ? at::complex(halves[0], halves[1])
            : at::complex(of_rows("word", tables, next), at::zeros({2, 4, kHalf}, at::kDouble));
    const at::Tensor w = of_rows(options["frequency"], tables, next);
    const at::Tensor angle = w * rotary_positions + of_rows(options["phase"], tables, next);
    EXPECT_EQ(next, tables.size());
    const at::Tensor word = amplitude * at::polar(at::ones_like(angle), angle);
    const at::Tensor out = method->embed(x, layout(), tables);
    EXPECT_LE(largest_difference(out, at::cat({at::real(word), at::imag(word)}, 2)), 1e-14)
        << options;
  }
}

TEST(Complex, GradientsOfItsTablesAgreeWithDifferences) {
  for (const json& options : sharing_schemes()) {
    const auto method = complex_of(options);
    Tensors inputs = {normal({2, 4, kSmallShape.width})};
    for (const at::Tensor& table : random_parameters(*method)) inputs.push_back(table);
    const auto run = [&](const Tensors& values) {
      const at::Tensor out = method->embed(values[0], layout(), Parameters(values).subspan(1));
      return at::cat({out, values[0]});  // embed() ignores the input if amplitudes are tables
    };
    EXPECT_LE(gradient_error(run, inputs, /*most=*/60), 1e-7) << options;
  }
}

TEST(Complex, EveryWordStartsWithTheOfficialFrequencies) {
  at::Tensor row = at::empty({kHalf}, at::kDouble);
  for (int64_t c = 0; c < kHalf; ++c)
    row[c] = std::pow(10000.0, -2.0 * static_cast<double>(c / 2) / kHalf);
  for (const char* frequency : {"component", "word-and-component"}) {
    const bool apart = frequency != std::string("component");
    const auto spec =
        complex_of({{"frequency", frequency}, {"vocabulary", apart ? json(kWords) : json()}})
            ->parameters()
            .at(0);
    EXPECT_EQ(spec.initial.sizes(), at::IntArrayRef(spec.sizes));
    EXPECT_LE(largest_difference(spec.initial.expand({kWords, kHalf}), row.expand({kWords, kHalf})),
              1e-15);
  }
}

TEST(Complex, ReadsWordsUnderAnotherMethodToo) {
  const json options = {{"phase", "word"}, {"vocabulary", kWords}};
  const auto method = complex_of(options);
  const auto over = make_method("window", kSmallShape, {{"of", "complex"}, {"options", options}});
  EXPECT_TRUE(over->reads_token_ids());
  EXPECT_FALSE(complex_of(json::object())->reads_token_ids());
  const at::Tensor x = normal({2, 4, kSmallShape.width});
  const Tensors tables = random_parameters(*method);
  EXPECT_TRUE(at::equal(over->embed(x, layout(), tables), method->embed(x, layout(), tables)));
}

TEST(Complex, RefusesWordsThatItCannotUse) {
  const auto fails = [](const json& options, const at::Tensor& token_ids, const char* says) {
    EXPECT_THAT(
        [&] {
          const auto method = complex_of(options);
          Layout place = layout();
          place.token_ids = token_ids;
          method->embed(normal({2, 4, kSmallShape.width}), place, random_parameters(*method));
        },
        ::testing::ThrowsMessage<Error>(::testing::HasSubstr(says)));
  };
  const at::Tensor good = layout().token_ids;
  const json own = {{"frequency", "word"}, {"vocabulary", kWords}};
  fails(own, {}, "layout: token_ids: expected int64 [2, 4]");
  fails(own, good.to(at::kDouble), "token_ids: expected int64 [2, 4] on the CPU, but got Double");
  fails(own, good.slice(1, 0, 3), "token_ids: expected int64 [2, 4]");
  fails(own, good + 1, "complex: token_ids: expected 0 to 4, but got 5");
  fails(own, good - 1, "complex: token_ids: expected 0 to 4, but got -1");
  fails({{"frequency", "word"}}, good, "complex: vocabulary: expected an integer from 1");
  fails({{"vocabulary", 5}}, good, "complex: vocabulary: expected null");
  fails({{"phase", "dimension"}}, good, "complex: phase: expected one of");
}

TEST(Complex, RefusesAModelOfMoreWordsThanItHas) {
  ModelShape shape = kSmallShape;
  shape.vocabulary = kWords + 1;
  const auto make = [&](int64_t token_ids) {
    return make_method("complex", shape, {{"phase", "word"}, {"vocabulary", token_ids}});
  };
  EXPECT_THAT([&] { make(kWords); },
              ::testing::ThrowsMessage<Error>(
                  "complex: vocabulary: expected at least the model's 6, but got 5"));
  EXPECT_EQ(make(kWords + 1)->parameters().back().sizes.at(0), kWords + 1);
  EXPECT_EQ(make(kWords + 2)->parameters().back().sizes.at(0), kWords + 2);
  EXPECT_NO_THROW(make_method("complex", shape, json::object())) << "it tells no words apart";
}

}  // namespace
}  // namespace sextant::testing
