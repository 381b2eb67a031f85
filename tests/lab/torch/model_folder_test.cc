#include "sextant/lab/torch/model_folder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/safetensors.h"
#include "tests/lab/families.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;

// Logits over four times the training length.
at::Tensor logits_of(const Decoder& decoder) {
  const at::NoGradGuard no_gradients;
  return decoder.logits(at::tensor(family_tokens(4 * kFamilyLength)).unsqueeze(0));
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// The files hold the exact weights, but NTK is restored as another base: a few hundred roundings of
// float32, of logits near 10.
constexpr double kRounding = 200 * 0x1p-24 * 10;

TEST(ModelFolder, WhatIsWrittenReadsBackToTheSameLogits) {
  for (const FamilyCase& one : family_cases()) {
    SCOPED_TRACE(one.name);
    const TemporaryFolder folder;
    const Decoder decoder = random_decoder(one.config);
    const std::string obstacle = write_model(one.config, decoder, folder.path());
    EXPECT_EQ(obstacle.empty(), one.family != hugging_face::Family::kOwn) << obstacle;
    EXPECT_EQ(read_json(folder / "config.json").at("architectures").at(0),
              hugging_face::facts_of(one.family).architecture);
    const SavedModel read = read_model(folder.path());
    EXPECT_LE(largest_difference(logits_of(read.decoder), logits_of(decoder)), kRounding);
    EXPECT_EQ(read.config.train_length, one.config.train_length);
    EXPECT_EQ(read.config.model, one.config.model);
  }
}

TEST(ModelFolder, WeightsReadBackBitByBit) {
  for (const FamilyCase& one : family_cases()) {
    SCOPED_TRACE(one.name);
    const TemporaryFolder folder;
    const Decoder decoder = random_decoder(one.config);
    write_model(one.config, decoder, folder.path());
    Decoder other = random_decoder(one.config, 2);
    read_weights(other, folder.path());
    for (size_t n = 0; n < decoder.parameters().size(); ++n) {
      EXPECT_TRUE(at::equal(other.parameters()[n].value, decoder.parameters()[n].value))
          << decoder.parameters()[n].name;
    }
  }
}

// Methods with tables by token id, or with keys that use the layers' own projections.
TEST(ModelFolder, MethodsThatReadWordsOrTheLayersReadBackToTheSameLogits) {
  const std::pair<const char*, json> methods[] = {
      {"complex", {{"amplitude", "word"}, {"frequency", "word-and-component"}, {"phase", "word"}}},
      {"deberta", {{"version", 3}}}};
  for (const auto& [method, options] : methods) {
    SCOPED_TRACE(method);
    const TemporaryFolder folder;
    const ModelConfig config = family_config(method, options, Norm::kLayerNorm, Activation::kGelu);
    const Decoder decoder = random_decoder(config);
    EXPECT_THAT(write_model(config, decoder, folder.path()), Not(IsEmpty()));
    const SavedModel read = read_model(folder.path());
    EXPECT_EQ(read.config.method, method);
    EXPECT_TRUE(at::equal(logits_of(read.decoder), logits_of(decoder)));
    EXPECT_FALSE(at::equal(logits_of(random_decoder(config, 2)), logits_of(decoder)));
  }
}

// A folder with a model, and the error after a change to one of its files.
class Damaged : public testing::Test {
 protected:
  Damaged() : config_(family_config("rope", json::object(), Norm::kRmsNorm, Activation::kSwiGlu)) {
    write_model(config_, random_decoder(config_), folder_.path());
  }

  // Changes a field of config.json; null removes it.
  void change(const char* field, const json& value) {
    json config = read_json(folder_ / "config.json");
    config[field] = value;
    if (value.is_null()) config.erase(field);
    write_json(folder_ / "config.json", config);
  }

  void expect(const std::string& field, const std::string& token_ids) {
    EXPECT_THAT([&] { read_model(folder_.path()); },
                ThrowsMessage<Error>(AllOf(HasSubstr(field), HasSubstr(token_ids))));
  }

  TemporaryFolder folder_;
  ModelConfig config_;
};

TEST_F(Damaged, AMissingFieldIsNamed) {
  change("hidden_size", nullptr);
  expect("hidden_size", "expected");
}

TEST_F(Damaged, AnUnknownArchitectureIsNamedWithThoseThereAre) {
  change("model_type", "bloom");
  expect("model_type", "expected one of llama, mistral");
}

TEST_F(Damaged, WhatTheDecoderDoesNotDoIsRefused) {
  change("attention_bias", true);
  expect("attention_bias", "expected false");
}

TEST_F(Damaged, AnotherActivationIsRefused) {
  change("hidden_act", "gelu");
  expect("hidden_act", "expected \"silu\"");
}

TEST_F(Damaged, TensorsOfAnotherShapeAreNamedWithBothShapes) {
  change("intermediate_size", 100);
  expect("model.layers.0.mlp.gate_proj.weight", "expected [100, 48], but got [192, 48]");
}

TEST_F(Damaged, TensorsThatAreMissingOrTooManyAreNamed) {
  change("num_hidden_layers", 3);
  expect("model.layers.2.input_layernorm.weight", "expected [48], but it is missing");
  change("num_hidden_layers", 1);
  expect("model.layers.1.", "expected no such tensor of this model, but got one of");
}

TEST_F(Damaged, AModelThatTheFileCannotHoldIsRefusedBeforeItIsMade) {
  change("num_hidden_layers", 1000);
  expect("model.safetensors", "numbers for 1000 layers of width 48, but got");
}

TEST_F(Damaged, AFileThatIsNotThereIsNamed) {
  std::filesystem::remove(folder_ / "model.safetensors");
  expect("model.safetensors", "cannot open it");
  std::filesystem::remove(folder_ / "config.json");
  expect("config.json", "cannot open it: No such file or directory");
  EXPECT_THAT([&] { read_model(folder_ / "nowhere"); },
              ThrowsMessage<Error>(HasSubstr("expected a folder with config.json")));
}

TEST_F(Damaged, AStretchThatIsWrittenByHandIsTheOneThatIsRead) {
  change("rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}});
  ModelConfig stretched = config_;
  stretched.options = json{{"stretch", "linear*4"}}.dump();
  EXPECT_LE(largest_difference(logits_of(read_model(folder_.path()).decoder),
                               logits_of(random_decoder(stretched))),
            kRounding);
}

TEST_F(Damaged, OneMatrixForReadingAndWritingIsRead) {
  change("tie_word_embeddings", true);
  change("sextant", nullptr);
  expect("lm_head.weight", "expected no such tensor");
  Safetensors content;
  const std::string file = read_text(folder_ / "model.safetensors");
  for (const TensorBytes& tensor : parse_safetensors(file).tensors) {
    if (tensor.name != "lm_head.weight") content.tensors.push_back(tensor);
  }
  write_text(folder_ / "model.safetensors", safetensors_file(content));
  const SavedModel read = read_model(folder_.path());
  EXPECT_EQ(read.config.train_length, kFamilyLength);  // from max_position_embeddings
  const auto& parameters = read.decoder.parameters();
  EXPECT_TRUE(at::equal(parameters.front().value, parameters.back().value));
  EXPECT_EQ(parameters.back().name, "unembedding");
}

TEST_F(Damaged, BiasesThatAreNotZeroAreRefused) {
  const ModelConfig config =
      family_config("rope", json::object(), Norm::kLayerNorm, Activation::kGelu);
  write_model(config, random_decoder(config), folder_.path());
  std::string file = read_text(folder_ / "model.safetensors");
  for (const TensorBytes& tensor : parse_safetensors(file).tensors) {
    if (tensor.name == "model.norm.bias") {
      const auto at = static_cast<size_t>(tensor.bytes.data() - file.data());
      file[at + 3] = '\x3f';
      break;
    }
  }
  write_text(folder_ / "model.safetensors", file);
  expect("model.norm.bias", "expected zeros");
}

TEST(ModelFolder, SaysWhyTransformersHasNone) {
  const TemporaryFolder folder;
  const ModelConfig config =
      family_config("t5", json::object(), Norm::kLayerNorm, Activation::kGelu);
  EXPECT_THAT(write_model(config, random_decoder(config), folder.path()),
              HasSubstr("t5 has no architecture there"));
}

}  // namespace
}  // namespace sextant::lab
