// Command lines of engines as users paste them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/explain.h"
#include "tests/rope_config/flag_lines.h"

namespace sextant::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

const Yarn& yarn_of(const RopeConfig& rope) {
  return std::get<Yarn>(std::get<Stretch>(rope.scaling.stretch));
}

// -c is the serving length.
TEST(LlamaCppFlags, TheContextIsNotTheOriginalLength) {
  const RopeConfig rope =
      read("llama-server -c 131072 --rope-scaling yarn --rope-scale 4 --rope-freq-base 1000000");
  EXPECT_EQ(yarn_of(rope).original_length, 32768);
  EXPECT_THAT(rope.scaling.warnings, Contains(HasSubstr("--yarn-orig-ctx is missing")));
  EXPECT_THAT(rope.scaling.warnings, Each(Not(HasSubstr("max_position_embeddings"))));
  const RopeConfig given =
      read("-c 131072 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 40960");
  EXPECT_EQ(yarn_of(given).original_length, 40960);
  EXPECT_THAT(given.scaling.warnings, Each(Not(HasSubstr("is missing"))));
  EXPECT_EQ(yarn_of(read("--rope-scaling yarn --rope-scale 4",
                         {.base = 1e6, .head_dim = 128, .length = 65536}))
                .original_length,
            16384);
  EXPECT_THAT([] { read("--rope-scaling yarn --rope-scale 4"); },
              ThrowsMessage<Error>(HasSubstr("flags: --yarn-orig-ctx: expected the length")));
}

TEST(LlamaCppFlags, NoFlagSaysAGain) {
  const RopeConfig rope =
      read("--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096 --yarn-attn-factor 0.5");
  EXPECT_NEAR(spectrum_of(rope, 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  EXPECT_THAT(rope.scaling.warnings, Contains(HasSubstr("#17945")));
  EXPECT_THAT(rope.scaling.warnings, Contains(HasSubstr("ik_llama.cpp still multiplies")));
}

TEST(VllmFlags, DottedNamesAreObjects) {
  const RopeConfig rope = read(
      "vllm serve m --hf-overrides.rope_parameters.rope_type yarn "
      "--hf_overrides.rope_parameters.factor=4.0 --max-model-len 131072 "
      "--hf-overrides.rope_parameters.original_max_position_embeddings 32768");
  EXPECT_EQ(yarn_of(rope).factor, 4);
  EXPECT_EQ(yarn_of(rope).original_length, 32768);
  EXPECT_NEAR(spectrum_of(rope, 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  const RopeConfig old =
      read("vllm serve m --rope-scaling.rope_type linear --rope-scaling.factor 2");
  EXPECT_EQ(std::get<Linear>(std::get<Stretch>(old.scaling.stretch)).factor, 2);
  EXPECT_THAT(old.scaling.warnings,
              Contains(HasSubstr("removed by #28006 (November 2025) in 0.11.1")));
  for (const char* wrong : {"--hf-overrides.a.99999999 1", "--hf-overrides..a 1",
                            "--hf-overrides.a.b.c.d.e.f.g.h.i 1"}) {
    EXPECT_THAT([&] { read(wrong); },
                ThrowsMessage<Error>(HasSubstr("expected keys with dots between them")))
        << wrong;
  }
}

TEST(VllmFlags, UnquotedJsonIsToBeQuoted) {
  EXPECT_THAT([] { read(R"(vllm serve m --hf-overrides {"rope_theta": 1e6})"); },
              ThrowsMessage<Error>(HasSubstr("expected JSON within single quotes")));
  EXPECT_THAT([] { read(R"(vllm serve m --hf-overrides {"rope_theta":1e6})"); },
              ThrowsMessage<Error>(HasSubstr("expected JSON within single quotes")));
}

TEST(VllmFlags, LaterVersionsDoNotReadAttnFactor) {
  const std::string yarn =
      R"(vllm serve m --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4,
         "original_max_position_embeddings": 8192, )";
  const RopeConfig old = read(yarn + R"("attn_factor": 0.5}}')");
  EXPECT_NEAR(spectrum_of(old, 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  EXPECT_THAT(old.scaling.warnings, Contains(HasSubstr("#56446")));
  const RopeConfig both = read(yarn + R"("attn_factor": 0.5, "attention_factor": 2}}')");
  EXPECT_EQ(spectrum_of(both, 1).gain, 2);
  EXPECT_THAT(both.scaling.warnings, Contains(HasSubstr("#56446")));
  // convert writes one gain for all versions.
  const RopeConfig alike =
      read(yarn + R"("attn_factor": 2, "attention_factor": 2.277258872223978}}')");
  EXPECT_NEAR(spectrum_of(alike, 1).gain, 0.2 * std::log(4) + 2, 1e-15);
  EXPECT_THAT(alike.scaling.warnings, Each(Not(HasSubstr("#56446"))));
}

// A length together with an override of the language model's object.
TEST(VllmFlags, LengthsGoWhereTheOverrideIs) {
  const std::string start =
      R"(vllm serve m --max-model-len 65536 --hf-overrides '{"text_config": {)";
  const RopeConfig rope = read(start + R"("rope_parameters": {"rope_type": "linear",
      "rope_theta": 1e6, "factor": 2}}}')");
  EXPECT_EQ(rope.max_length, 65536);
  EXPECT_EQ(std::get<Linear>(std::get<Stretch>(rope.scaling.stretch)).factor, 2);
  const RopeConfig both = read(start + R"("max_position_embeddings": 32768}}')");
  EXPECT_EQ(both.max_length, 32768);
  EXPECT_THAT(both.scaling.warnings, Contains(HasSubstr("--max-model-len says 65536")));
  EXPECT_EQ(read(R"(vllm serve m --rope-theta 500 --hf-overrides '{"text_config": {}}')",
                 {.head_dim = 128})
                .base,
            500);
  EXPECT_THAT(
      [] {
        read(R"(vllm m --rope-theta 500 --hf-overrides '{"text_config": {"rope_theta": 1e4}}')");
      },
      ThrowsMessage<Error>(HasSubstr("flags: --rope-theta: expected none beside another")));
}

// llama.cpp takes values from the model's file if no flag sets them.
TEST(LlamaCppFlags, SayWhatTheFileDecides) {
  const RopeConfig scale = read("-m x --rope-scale 4");
  EXPECT_EQ(std::get<Linear>(std::get<Stretch>(scale.scaling.stretch)).factor, 4);
  EXPECT_THAT(scale.scaling.warnings, Contains(HasSubstr("--rope-scaling is missing: llama.cpp")));
  const RopeConfig yarn = read("-m x --rope-scaling yarn --yarn-orig-ctx 32768 -c 131072");
  EXPECT_EQ(yarn_of(yarn).factor, 1);
  EXPECT_THAT(yarn.scaling.warnings, Contains(HasSubstr("--rope-scale is missing: llama.cpp")));
  EXPECT_THAT(read("-m x --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096").scaling.warnings,
              Each(Not(HasSubstr("is missing"))));
}

TEST(LlamaCppFlags, IdleOnesAreNamed) {
  const RopeConfig none = read("-m x --rope-scaling none --rope-scale 4 --yarn-orig-ctx 4096");
  EXPECT_EQ(none.scaling.type, "default");
  EXPECT_EQ(explain(none, 0).factor, 1);
  EXPECT_THAT(none.scaling.warnings,
              Contains(HasSubstr("--rope-scale has no effect with --rope-scaling none")));
  EXPECT_THAT(none.scaling.warnings,
              Contains(HasSubstr("--yarn-orig-ctx has no effect with --rope-scaling none")));
  const RopeConfig linear =
      read("-m x --rope-scale 4 --yarn-orig-ctx 32768 --yarn-beta-fast 16 -c 131072");
  EXPECT_EQ(linear.scaling.type, "linear");
  EXPECT_EQ(explain(linear, 0).trained, 32768);
  EXPECT_EQ(explain(linear, 0).target, 131072);
  EXPECT_THAT(linear.scaling.warnings,
              Contains(HasSubstr("--yarn-orig-ctx has no effect on interpolation")));
  EXPECT_THAT(linear.scaling.warnings,
              Contains(HasSubstr("--yarn-beta-fast has no effect with interpolation")));
  EXPECT_THAT([] { read("-m x --rope-scale 4 --yarn-attn-factor 1.2"); },
              ThrowsMessage<Error>(HasSubstr("flags: --yarn-attn-factor: expected 1 where")));
}

// src/llama-context.cpp: ext_factor controls the ramp and the gain.
TEST(LlamaCppFlags, TheExtFactorDecidesOnTheRamp) {
  const RopeConfig none = read(
      "-m x --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 --yarn-ext-factor 0 "
      "-c 131072");
  const Explained numbers = explain(none, 0);
  EXPECT_EQ(none.scaling.type, "linear");
  EXPECT_EQ(numbers.gain, 1);
  EXPECT_EQ(numbers.trained, 32768);
  EXPECT_EQ(numbers.target, 131072);
  for (const PairExplained& pair : numbers.pairs) {
    EXPECT_NEAR(pair.stretched, pair.frequency / 4, 1e-15);
  }
  const RopeConfig whole =
      read("-m x --rope-scaling linear --rope-scale 4 --yarn-orig-ctx 4096 --yarn-ext-factor 1");
  EXPECT_NEAR(spectrum_of(whole, 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  EXPECT_THAT(
      [] { read("--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 8 --yarn-ext-factor 0.5"); },
      ThrowsMessage<Error>(
          HasSubstr("flags: --yarn-ext-factor: expected 1, the whole ramp, or 0")));
}

TEST(LlamaCppFlags, TwoScalesAreAlike) {
  EXPECT_EQ(explain(read("-m x --rope-scale 4 --rope-freq-scale 0.25"), 0).factor, 4);
  EXPECT_THAT([] { read("-m x --rope-scale 4 --rope-freq-scale 0.5"); },
              ThrowsMessage<Error>(HasSubstr("expected the scale that --rope-scale says")));
}

TEST(LlamaCppFlags, TheEnvironmentIsRead) {
  const RopeConfig rope = read(
      "LLAMA_ARG_CTX_SIZE=131072 LLAMA_ARG_ROPE_SCALING_TYPE=yarn LLAMA_ARG_ROPE_SCALE=8 "
      "llama-server -m x.gguf --rope-scale 4 --yarn-orig-ctx 32768");
  EXPECT_EQ(yarn_of(rope).factor, 4);
  EXPECT_EQ(explain(rope, 0).target, 131072);
}

TEST(LlamaCppFlags, NoneOfTheirWarningsIsAboutAConfig) {
  for (const char* line :
       {"-m x --rope-scale 4 --rope-freq-scale 0.25 -c 131072",
        "-m x -c 131072 --rope-freq-base 1e6 --rope-freq-scale 0.5 -np 4",
        "-m x -c 131072 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 16384"}) {
    EXPECT_THAT(read(line).scaling.warnings, Each(Not(HasSubstr("max_position_embeddings"))))
        << line;
  }
}

// vLLM takes it from the model's file, which is not available here.
TEST(VllmFlags, AnOriginalLengthIsAskedFor) {
  for (const char* type : {"yarn", "llama3", "deepseek_yarn"}) {
    EXPECT_THAT(
        [&] {
          read(std::string(
                   R"(vllm serve x --max-model-len 131072 --hf-overrides '{"rope_scaling":)") +
               R"({"factor":4.0,"rope_type":")" + type + "\"}}'");
        },
        ThrowsMessage<Error>(HasSubstr("flags: original_max_position_embeddings: expected it")))
        << type;
  }
}

// vLLM's base does not grow with the length, and without max_trained_positions it is the plain
// base.
TEST(VllmFlags, DynamicIsPlain) {
  const RopeConfig rope = read(
      R"(vllm serve x --hf-overrides '{"rope_scaling": {"rope_type":"dynamic","factor":8.0}}'
      --max-model-len 120000)");
  const Explained numbers = explain(rope, 0);
  EXPECT_EQ(numbers.trained, 0);
  EXPECT_EQ(numbers.factor, 1);
  EXPECT_EQ(numbers.pairs.back().stretched, numbers.pairs.back().frequency);
  EXPECT_THAT(rope.scaling.warnings, Contains(HasSubstr(engine_fact("vllm.dynamic"))));
  EXPECT_THAT(rope.scaling.warnings, Each(Not(HasSubstr("has no effect"))));
}

// Since 0.30 vLLM computes the gain as transformers does; a warning says this and what earlier
// versions do.
TEST(VllmFlags, TheGainIsThatOfItsVersions) {
  const std::string start =
      R"(vllm serve x --hf-overrides '{"rope_scaling":{"rope_type":"yarn","factor":4.0,
      "original_max_position_embeddings":32768)";
  for (const char* rest :
       {R"(,"attention_factor":1.0}}')", R"(,"mscale":1.0,"mscale_all_dim":1.0}}')"}) {
    const RopeConfig rope = read(start + rest);
    EXPECT_EQ(explain(rope, 0).gain, 1) << rest;
    EXPECT_THAT(rope.scaling.warnings, Contains(engine_fact("vllm.attention_factor"))) << rest;
  }
  const RopeConfig alone = read(start + R"(,"mscale_all_dim":1.0}}')");
  EXPECT_NEAR(explain(alone, 0).gain, 0.1 * std::log(4) + 1, 1e-15);
  EXPECT_THAT(alone.scaling.warnings, Each(Not(engine_fact("vllm.attention_factor"))));
}

TEST(HuggingFace, AnotherGainOfYarnIsWarnedOf) {
  const auto warnings = [](const std::string& more) {
    return read(R"({"head_dim": 128, "rope_theta": 1e6, "rope_scaling": {"rope_type": "yarn",
        "factor": 4, "original_max_position_embeddings": 32768)" +
                more + "}}")
        .scaling.warnings;
  };
  EXPECT_THAT(warnings(R"(, "attention_factor": 1.0)"),
              Contains(engine_fact("vllm.attention_factor")));
  EXPECT_THAT(warnings(R"(, "mscale": 0.707, "mscale_all_dim": 1.0)"),
              Contains(engine_fact("vllm.attention_factor")));
  EXPECT_THAT(warnings(""), Each(Not(engine_fact("vllm.attention_factor"))));
}

// The type's name means that vLLM's code of latent attention multiplies all scores.
TEST(VllmFlags, DeepseeksYarnScalesScores) {
  const RopeConfig rope = read(
      R"(vllm serve x --hf-overrides '{"rope_scaling":{"rope_type":"deepseek_yarn","factor":40.0,
      "original_max_position_embeddings":4096,"mscale":1.0,"mscale_all_dim":1.0}}')");
  EXPECT_NEAR(rope.scaling.score_factor, std::pow(0.1 * std::log(40) + 1, 2), 1e-12);
  EXPECT_EQ(explain(rope, 0).gain, 1);
}

TEST(VllmFlags, TwoScalingsContradict) {
  const auto scaling = [](int factor) {
    return R"({"rope_type":"yarn","original_max_position_embeddings":32768,"factor":)" +
           std::to_string(factor) + "}";
  };
  EXPECT_THAT(
      [&] {
        read("vllm serve x --rope-scaling '" + scaling(4) +
             R"(' --hf-overrides '{"rope_scaling":)" + scaling(2) + "}'");
      },
      ThrowsMessage<Error>(HasSubstr("flags: --rope-scaling: expected none beside another")));
  EXPECT_THAT(
      [&] {
        read(R"(vllm serve x --hf-overrides '{"rope_scaling":)" + scaling(4) +
             R"(,"rope_parameters":)" + scaling(2) + "}'");
      },
      ThrowsMessage<Error>(HasSubstr("flags: --hf-overrides: rope_scaling: expected none")));
  const RopeConfig both =
      read(R"(vllm serve x --hf-overrides '{"text_config": {"rope_parameters":)" + scaling(4) +
           R"(}, "rope_scaling":)" + scaling(2) + "}'");
  EXPECT_EQ(yarn_of(both).factor, 4);
  EXPECT_THAT(both.scaling.warnings,
              Contains(HasSubstr("rope_scaling stands at the top of --hf-overrides")));
}

TEST(VllmFlags, QuotesMayBeEscaped) {
  const RopeConfig rope = read(
      R"(vllm serve x --hf-overrides "{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,)"
      R"(\"original_max_position_embeddings\":32768}}" --max-model-len 131072)");
  EXPECT_EQ(yarn_of(rope).factor, 4);
  EXPECT_EQ(yarn_of(rope).original_length, 32768);
}

TEST(EngineFacts, CarryVersions) {
  EXPECT_THAT(engine_fact("transformers.score_scale"), HasSubstr("transformers#47435"));
  EXPECT_THAT(engine_fact("llama.cpp.truncate"), HasSubstr("0c1e57098"));
  EXPECT_THAT([] { engine_fact("frob"); }, ThrowsMessage<Error>(HasSubstr("expected a fact")));
}

TEST(Flags, MeanWhatTheEnginesDo) {
  const auto of = [](const std::string& text) {
    return read_rope_config_bytes(text, {.base = 10000, .head_dim = 128}).configs.at(0);
  };
  const RopeConfig yarn = of(
      "llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 --rope-freq-base 1e6");
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(yarn.scaling.stretch)).factor, 4);
  EXPECT_EQ(
      std::get<Linear>(std::get<Stretch>(of("--rope-freq-scale 0.25").scaling.stretch)).factor, 4);
  const RopeConfig vllm = of(R"(vllm --rope-scaling '{"rope_type":"yarn","factor":4.0,)"
                             R"("original_max_position_embeddings":32768}' --rope-theta 1e6)");
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(vllm.scaling.stretch)).original_length, 32768);
  const auto error_of = [&](const std::string& text, const char* words) {
    EXPECT_THAT([&] { of(text); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of("--rope-scale many", "flags: --rope-scale: expected a number");
  error_of("--rope-speed 4", "flags: --rope-speed: expected a flag");
  error_of("--rope-scaling warp", "flags: --rope-scaling: expected none, linear or yarn");
  error_of("--rope-scale 2 --rope-scale 3", "flags: --rope-scale: expected once");
  error_of("--rope-scale 0.5", "flags: --rope-scale: expected a number that makes frequencies 1");
  error_of("--rope-freq-base -10",
           "flags: --rope-freq-base: expected a number from 0, but got -10");
  error_of("--grp-attn-n 4 -gaw 1024", "flags: --grp-attn-n: expected 1");
  error_of("--override-kv llama.rope.freq_base=float:1e6",
           "flags: --override-kv: expected nothing");
  error_of("--max-model-len long", "flags: --max-model-len: expected a length like");
  error_of("--hf-overrides 4", "flags: --hf-overrides: expected an object");
  error_of("--rope-scale --ctx-size 4096", "flags: --rope-scale: expected a value, but got none");
  error_of("--rope-scale 4 yarn", "flags: expected a flag, but got \"yarn\"");
  EXPECT_THAT([] { read_rope_config_bytes("--rope-scale 4", {.head_dim = 128}); },
              ThrowsMessage<Error>(HasSubstr("flags: --rope-freq-base: expected the base")));
}

// Lines as users paste them.
TEST(Flags, WholeCommandLinesAreRead) {
  const auto of = [](const std::string& text) {
    return read_rope_config_bytes(text, {.base = 1e6, .head_dim = 128}).configs.at(0);
  };
  const RopeConfig server =
      of("./llama-server -m /models/qwen2.5.gguf -c 131072 -ngl 99 -fa --rope-scaling yarn \\\n"
         "  --rope-scale 4 --yarn-orig-ctx 32768 --yarn-attn-factor -1 --temp 0.7 --host 0.0.0.0");
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(server.scaling.stretch)).factor, 4);
  EXPECT_EQ(server.max_length, 131072);
  EXPECT_THAT(server.scaling.warnings,
              Contains(HasSubstr("passed over, as they are not about rotary positions: -m, -ngl, "
                                 "-fa, --temp, --host")));
  const RopeConfig vllm =
      of("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 128K "
         "--enable-prefix-caching --hf_overrides '{\"rope_scaling\": {\"rope_type\": \"yarn\", "
         "\"factor\": 4, \"original_max_position_embeddings\": 32768}}'");
  EXPECT_EQ(vllm.max_length, 131072);
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(vllm.scaling.stretch)).original_length, 32768);
}

// SGLang's flags are refused by name, in any form, and its lines without them, too.
TEST(Flags, OfOtherProgramsAreRefusedByName) {
  const std::string sglang = "python -m sglang.launch_server --context-length 131072 ";
  for (const char* form : {R"(--json-model-override-args '{"rope_scaling":{"rope_type":"yarn"}}')",
                           R"(--json-model-override-args {"rope_scaling":{"rope_type":"yarn"}})",
                           R"(--json_model_override_args={"a":1})", "--json-model-override-args"}) {
    for (const std::string& start : {sglang, std::string("-m x --rope-scale 2 ")}) {
      EXPECT_THAT(
          [&] { read(start + form); },
          ThrowsMessage<Error>(
              AllOf(HasSubstr("flags: --json-model-override-args: expected"), HasSubstr("SGLang"))))
          << form;
    }
  }
  for (const char* line : {"sglang serve --model-path x --context-length 4096",
                           "/usr/bin/python3 -m sglang.launch_server --tp 4"}) {
    EXPECT_THAT([&] { read(line); }, ThrowsMessage<Error>(HasSubstr("but got SGLang's"))) << line;
  }
  EXPECT_THAT([] { read("mlx_lm.server --model x"); },
              ThrowsMessage<Error>(HasSubstr("but got MLX's")));
  EXPECT_THAT([] { read("python server.py --compress_pos_emb 4"); },
              ThrowsMessage<Error>(HasSubstr("text-generation-webui")));
  EXPECT_EQ(read("vllm serve sglang/model --max-model-len 4096").scaling.type, "default");
}

TEST(Flags, OfAShellAreRead) {
  const RopeConfig rope =
      read(R"(docker run x sh -c "llama-server -m x -c 131072 --rope-scaling yarn --rope-scale 4 )"
           R"(--yarn-orig-ctx 32768")");
  EXPECT_EQ(yarn_of(rope).factor, 4);
  EXPECT_EQ(explain(rope, 0).target, 131072);
}

TEST(Flags, ShortOnesAloneAreFlagsToo) {
  EXPECT_EQ(read_rope_config_bytes("-c 4096", {.base = 1e4, .head_dim = 64}).dialect, "flags");
  EXPECT_THAT([] { read_rope_config_bytes("-1 words", {}); },
              ThrowsMessage<Error>(HasSubstr("expected a config.json, a GGUF file, or flags")));
}

}  // namespace
}  // namespace sextant::testing
