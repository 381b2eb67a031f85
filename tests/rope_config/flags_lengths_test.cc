// Lengths in flags: for serving, of training, and lengths that are written into other formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/base/error.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/write_config.h"
#include "tests/rope_config/flag_lines.h"

namespace sextant::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// A serving length is the length to explain, and says nothing about training.
TEST(LlamaCppFlags, TheContextIsTheLengthToJudgeBy) {
  const Explained shorter =
      explain(read("-m x --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 65536"), 0);
  EXPECT_EQ(shorter.trained, 32768);
  EXPECT_EQ(shorter.target, 65536);
  const RopeConfig longer =
      read("-m x -c 262144 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768");
  EXPECT_EQ(explain(longer, 0).target, 262144);
  EXPECT_EQ(explain(longer, 4096).target, 4096);
  EXPECT_THAT(longer.scaling.warnings,
              Contains(HasSubstr("-c is 262144, more than factor times the original length")));
}

TEST(LlamaCppFlags, TheLengthOfTrainingIsNotKnown) {
  for (const char* line :
       {"-m x.gguf --rope-scaling none -c 131072", "-m m.gguf -c 131072 --rope-freq-base 26000"}) {
    const RopeConfig rope = read(line);
    EXPECT_EQ(explain(rope, 0).trained, 0) << line;
    EXPECT_EQ(explain(rope, 0).target, 131072) << line;
    EXPECT_EQ(explain(rope, 0).first_leaving, 0) << line;
    EXPECT_THAT(rope.scaling.warnings,
                Contains(HasSubstr("the length that the model was trained on is not known")))
        << line;
  }
  EXPECT_THAT(
      read("-m x --rope-scaling yarn --rope-scale 4 -c 4096 --yarn-orig-ctx 4096").scaling.warnings,
      Each(Not(HasSubstr("is not known"))));
}

TEST(VllmFlags, TheLengthIsTheOneToJudgeBy) {
  const std::string yarn =
      R"(vllm serve x --hf-overrides '{"rope_scaling":{"rope_type":"yarn","factor":4.0,)"
      R"("original_max_position_embeddings":262144}}' --max-model-len )";
  const Explained numbers = explain(read(yarn + "1010000"), 0);
  EXPECT_EQ(numbers.trained, 262144);
  EXPECT_EQ(numbers.target, 1010000);
  for (const char* whole : {"auto", "-1"}) {
    EXPECT_EQ(explain(read(yarn + whole), 0).target, 1048576) << whole;
  }
  const RopeConfig alone = read("vllm serve x --max-model-len 131072");
  EXPECT_EQ(explain(alone, 0).trained, 0);
  EXPECT_EQ(explain(alone, 0).target, 131072);
  EXPECT_THAT(alone.scaling.warnings, Contains(HasSubstr("--max-model-len is how far to read")));
  const RopeConfig own = read(
      R"(vllm serve x --max-model-len 65536 --hf-overrides '{"max_position_embeddings": 131072}')");
  EXPECT_EQ(explain(own, 0).trained, 131072);
  EXPECT_EQ(explain(own, 0).target, 65536);
  EXPECT_THAT(own.scaling.warnings, Contains(HasSubstr("--max-model-len says 65536 and")));
  const RopeConfig linear = read(
      R"(vllm serve x --max-model-len 131072 --hf-overrides
      '{"rope_scaling": {"rope_type":"linear","factor":4.0}}')");
  EXPECT_EQ(explain(linear, 0).trained, 32768);
  EXPECT_EQ(explain(linear, 0).target, 131072);
}

// A sequence of llama-server has a part of -c: n_ctx / n_parallel in multiples of 256, unless the
// cache is unified.
TEST(LlamaCppSlots, DivideTheContext) {
  const std::string yarn = " --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768";
  const auto target = [&](const std::string& line) {
    return explain(read("llama-server -m x " + line + yarn), 0).target;
  };
  for (const char* line : {"-c 131072 -np 4", "-c 131072 --parallel 4", "-np=4 --ctx_size=131072",
                           "-c 131072 -np 4 -kvu -no-kvu", "-c 131072 -np 4 --no-kv-unified",
                           "-c 262144 -np 4 --kv-unified-per-slot 32768"}) {
    EXPECT_EQ(target(line), 32768) << line;
  }
  for (const char* line : {"-c 131072", "-c 131072 -np 1", "-c 131072 -np -1 -no-kvu",
                           "-c 131072 -np 4 -kvu", "-c 131072 --parallel 4 --kv-unified"}) {
    EXPECT_EQ(target(line), 131072) << line;
  }
  EXPECT_EQ(target("-c 131072 -np 3"), 43776);
  EXPECT_EQ(target("-np 2 --kv-unified-per-slot 65536"), 65536);
  const RopeConfig four = read("-c 131072 -np 4" + yarn);
  EXPECT_THAT(four.scaling.warnings,
              Contains(HasSubstr("has 32768 of the 131072 positions of -c")));
  EXPECT_THAT(four.scaling.warnings, Contains(HasSubstr(engine_fact("llama.cpp.slots"))));
  EXPECT_THAT(read("-c 131072 -np 4 -kvu" + yarn).scaling.warnings,
              Each(Not(HasSubstr(engine_fact("llama.cpp.slots")))));
  EXPECT_THAT(read("-np 4" + yarn).scaling.warnings,
              Contains(HasSubstr("the file's context_length divided by -np 4")));
  const RopeConfig assumed = read("-c 131072 -np 2 --rope-scaling yarn --rope-scale 4");
  EXPECT_EQ(explain(assumed, 0).trained, 16384);
  EXPECT_THAT(read("-c 524288 -np 2" + yarn).scaling.warnings,
              Contains(HasSubstr("-c divided by -np is 262144, more than factor times")));
  for (const char* slots : {"0", "257", "1.5"}) {
    EXPECT_THAT([&] { read(std::string("-c 4096 --rope-scale 2 -np ") + slots); },
                ThrowsMessage<Error>(HasSubstr("flags: -np: expected a number of slots from 1")));
  }
}

TEST(LlamaCppSlots, MayComeFromTheEnvironment) {
  const auto target = [](const std::string& variables, const std::string& line = "") {
    return explain(read(variables +
                        " llama-server -m x -c 131072 --rope-scaling yarn"
                        " --rope-scale 4 --yarn-orig-ctx 32768 " +
                        line),
                   0)
        .target;
  };
  EXPECT_EQ(target("LLAMA_ARG_N_PARALLEL=4"), 32768);
  EXPECT_EQ(target("LLAMA_ARG_N_PARALLEL=4", "-np 2"), 65536);
  for (const char* on : {"on", "enabled", "true", "1"}) {
    EXPECT_EQ(target("LLAMA_ARG_N_PARALLEL=4 LLAMA_ARG_KV_UNIFIED=" + std::string(on)), 131072);
  }
  EXPECT_EQ(target("LLAMA_ARG_N_PARALLEL=4 LLAMA_ARG_KV_UNIFIED=0"), 32768);
  EXPECT_EQ(target("LLAMA_ARG_KV_UNIFIED=1 LLAMA_ARG_NO_KV_UNIFIED=0 LLAMA_ARG_N_PARALLEL=4"),
            32768);
  EXPECT_EQ(target("LLAMA_ARG_KV_UNIFIED_PER_SLOT=8192"), 8192);
  EXPECT_THAT([&] { target("LLAMA_ARG_KV_UNIFIED=yes"); },
              ThrowsMessage<Error>(HasSubstr("flags: --kv-unified: expected on, off")));
  for (const char* wrong : {"LLAMA_ARG_ROPE_SCALING=yarn", "LLAMA_ARG_PARALLEL=4"}) {
    EXPECT_THAT([&] { target(wrong); },
                ThrowsMessage<Error>(HasSubstr("expected a variable that llama.cpp reads")));
  }
  EXPECT_EQ(explain(read("LLAMA_ARG_CTX_SIZE=4096\nLLAMA_ARG_ROPE_SCALE=2\n"), 0).target, 4096)
      << "variables alone";
}

// mpirun has -np, too.
TEST(LlamaCppSlots, AreNotThoseOfOtherPrograms) {
  const RopeConfig rope = read("mpirun -np 4 vllm serve x --max-model-len 4096");
  EXPECT_EQ(explain(rope, 0).target, 4096);
  EXPECT_THAT(rope.scaling.warnings, Contains(HasSubstr("passed over")));
}

// llama-server cuts a slot at the file's context_length, which only YaRN's flags raise.
TEST(LlamaCppSlots, AreCutWithoutYarn) {
  const auto warnings = [](const std::string& line) {
    return read("llama-server -m x " + line).scaling.warnings;
  };
  const auto cut = HasSubstr(engine_fact("llama.cpp.cut"));
  for (const char* line :
       {"-c 16384 --rope-scaling linear --rope-scale 4", "--rope-freq-scale 0.25 -c 16384",
        "-c 16384 --rope-freq-base 80000", "-c 16384 --rope-freq-base 80000 --rope-scaling none",
        "-c 16384 --rope-scaling linear --rope-scale 4 --yarn-orig-ctx 4096 --yarn-ext-factor 1",
        "-c 16384 --rope-scale 4 --override-kv llama.context_length=int:8192",
        "-c 32768 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096"}) {
    EXPECT_THAT(warnings(line), Contains(cut)) << line;
  }
  for (const char* line :
       {"-c 16384 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096", "-c 16384",
        "-c 16384 --rope-scale 4 --override-kv llama.context_length=int:16384",
        "-c 16384 --rope-scale 4 --override-kv a.b=int:1,llama.context_length=int:16384"}) {
    EXPECT_THAT(warnings(line), Each(Not(cut))) << line;
  }
}

TEST(Convert, SaysWhereLlamaServerCuts) {
  const auto said = [](const std::string& type, int64_t length) {
    std::vector<std::string> warnings;
    write_rope_config(
        read_rope_config_bytes(R"({"model_type": "llama", "head_dim": 128, "rope_theta": 1e4,
            "max_position_embeddings": )" +
                                   std::to_string(length) + R"(, "rope_scaling": {"rope_type": ")" +
                                   type + R"(",
            "factor": 4, "original_max_position_embeddings": 4096}})",
                               {}),
        "llama.cpp", warnings);
    return warnings;
  };
  EXPECT_THAT(said("linear", 4096),
              Contains(HasSubstr("--override-kv ARCH.context_length=int:16384")));
  EXPECT_THAT(said("linear", 16384), Each(Not(HasSubstr("--override-kv"))));
  EXPECT_THAT(said("yarn", 4096), Each(Not(HasSubstr("--override-kv"))));
}

// The context is the serving length, not the training length.
TEST(Flags, InterpolationDividesTheContext) {
  const RopeConfig linear =
      read_rope_config_bytes("--rope-scale 4 -c 16384", {.base = 1e4, .head_dim = 128})
          .configs.at(0);
  EXPECT_EQ(explain(linear, 0).trained, 4096);
  EXPECT_EQ(explain(linear, 0).target, 16384);
}

// Gemma 3 as released: vllm/config/model.py does not multiply its length by the factor either.
TEST(VllmFlags, AreNotAskedForMoreThanAModelWasTrainedOn) {
  const ReadRopeConfig gemma = read_rope_config_bytes(
      R"({"model_type": "gemma3_text", "max_position_embeddings": 131072, "head_dim": 128,
          "num_hidden_layers": 12, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
          "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "sliding_window": 1024})",
      {});
  EXPECT_THAT(write_rope_config(gemma, "vllm"), HasSubstr("--max-model-len 131072"));
  for (const RopeConfig& rope : gemma.configs) {
    const Explained numbers = explain(rope, 0);
    EXPECT_EQ(numbers.trained, 131072);
    EXPECT_EQ(numbers.target, 131072);
  }
  const RopeConfig& full = gemma.configs.at(gemma.configs.at(0).window == 0 ? 0 : 1);
  const Explained numbers = explain(full, 0);
  EXPECT_EQ(numbers.factor, 8);
  EXPECT_EQ(numbers.first_leaving, 131072);
  EXPECT_EQ(explain(full, 262144).first_leaving, 131072);
  const RopeConfig other = read(
      R"({"model_type": "llama", "max_position_embeddings": 4096, "head_dim": 128,
          "rope_theta": 1e6, "rope_scaling": {"rope_type": "linear", "factor": 8.0}})",
      {});
  EXPECT_EQ(explain(other, 0).trained, 4096);
  EXPECT_EQ(explain(other, 0).target, 32768);
}

TEST(VllmFlags, GrowingScalingsAreRefused) {
  const ReadRopeConfig dynamic = read_rope_config_bytes(
      R"({"head_dim": 128, "rope_theta": 1e4, "max_position_embeddings": 4096,
          "rope_scaling": {"rope_type": "dynamic", "factor": 2}})",
      {});
  EXPECT_THAT([&] { write_rope_config(dynamic, "vllm"); },
              ThrowsMessage<Error>(HasSubstr("convert: vllm: dynamic: expected a fixed scaling")));
}

// -c and --max-model-len are not a model's max_position_embeddings.
TEST(Convert, LengthsForServingAreNotWrittenAsTrained) {
  const auto written = [](const std::string& line, const std::string& to) {
    return write_rope_config(read_rope_config_bytes(line, {.base = 1e6, .head_dim = 128}), to);
  };
  EXPECT_THAT(written("-m x --rope-scaling none -c 131072", "hf5"),
              Not(HasSubstr("max_position_embeddings")));
  EXPECT_THAT(written("vllm serve x --max-model-len 131072", "hf4"),
              Not(HasSubstr("max_position_embeddings")));
  EXPECT_EQ(read(written("-m x --rope-scaling none -c 131072", "gguf"), {}).max_length, 0);
  const RopeConfig linear =
      read(written("-m x --rope-scaling linear --rope-scale 4 -c 131072", "hf5"), {});
  EXPECT_EQ(explain(linear, 0).trained, 32768);
  EXPECT_EQ(explain(linear, 0).target, 131072);
  const RopeConfig yarn = read(
      written("-m x --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072", "hf5"),
      {});
  EXPECT_EQ(yarn.max_length, 131072);
  EXPECT_EQ(explain(yarn, 0).trained, 32768);
}

}  // namespace
}  // namespace sextant::testing
