// Files of YAML that start engines, in the forms that people write.
#include "sextant/rope_config/launch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/yaml.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"

namespace sextant::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RopeConfig read(const std::string& yaml) {
  const ReadRopeConfig all =
      read_rope_config_bytes(yaml, {.base = 1e6, .head_dim = 128}, read_yaml);
  EXPECT_EQ(all.dialect, "flags");
  return all.configs.at(0);
}

void expect_yarn(const std::string& yaml) {
  SCOPED_TRACE(yaml);
  const RopeConfig rope = read(yaml);
  const Explained numbers = explain(rope, 0);
  EXPECT_EQ(rope.scaling.type, "yarn");
  EXPECT_EQ(numbers.factor, 4);
  EXPECT_EQ(numbers.trained, 32768);
  EXPECT_EQ(numbers.target, 131072);
}

const std::string kVllm = R"({"rope_parameters": {"rope_type": "yarn", "factor": 4.0,)"
                          R"( "original_max_position_embeddings": 32768}})";

TEST(LaunchFile, ACommandIsALine) {
  const std::string line = "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072";
  expect_yarn("command: " + line);
  expect_yarn("# a comment\n---\ncommand: \"" + line + "\"\n");
  expect_yarn(
      "command: >\n  --rope-scaling yarn --rope-scale 4\n  --yarn-orig-ctx 32768\n"
      "  -c 131072\n");
  expect_yarn(
      "command: |\n  --rope-scaling yarn \\\n  --rope-scale 4 --yarn-orig-ctx 32768 \\\n"
      "  -c 131072\n");
  expect_yarn("command: --rope-scaling yarn\n  --rope-scale 4 --yarn-orig-ctx 32768\n  -c 131072");
  expect_yarn("models:\n  \"a:b\":\n    cmd: |\n      llama-server --port ${PORT} " + line);
  expect_yarn("entrypoint: llama-server\ncommand: " + line);
}

TEST(LaunchFile, ACommandIsAList) {
  expect_yarn(R"(command: ["-m", "x.gguf", "--ctx-size", "131072", "--rope-scaling", "yarn",
    "--rope-scale", "4", "--yarn-orig-ctx", "32768", "--flash-attn"])");
  expect_yarn(
      "command:\n- --rope-scaling\n- yarn\n- --rope-scale=4\n- --yarn-orig-ctx=32768\n"
      "- -c\n- 131072\n");
  expect_yarn(
      "- --rope-scaling\n- yarn\n- --rope-scale\n- \"4\"\n- --yarn-orig-ctx\n- 32768\n"
      "- -c\n- 131072\n");
  expect_yarn("command:\n  - --hf-overrides\n  - '" + kVllm + "'\n  - --max-model-len=131072\n");
  expect_yarn("command: [\"sh\", \"-c\", \"vllm serve m --max-model-len 131072 --hf-overrides '" +
              std::string(R"({\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4,)") +
              R"( \"original_max_position_embeddings\": 32768}}'"])");
}

TEST(LaunchFile, AnItemIsOneWord) {
  EXPECT_THAT(
      [] { read("command:\n- --rope-scale 4\n- -c 4096\n"); },
      ThrowsMessage<Error>(HasSubstr("flags: --rope-scale 4: expected a flag and its value")));
  EXPECT_THAT([] { read("command:\n- --rope-scale=4\n- -c 4096\n"); },
              ThrowsMessage<Error>(HasSubstr("flags: -c 4096: expected a flag and its value")));
}

TEST(LaunchFile, VariablesAreAMappingOrAList) {
  expect_yarn(
      "LLAMA_ARG_ROPE_SCALING_TYPE: yarn\nLLAMA_ARG_ROPE_SCALE: 4\n"
      "LLAMA_ARG_YARN_ORIG_CTX: 32768\nLLAMA_ARG_CTX_SIZE: 131072\n");
  expect_yarn(
      "environment:\n  - LLAMA_ARG_ROPE_SCALING_TYPE=yarn\n  - LLAMA_ARG_ROPE_SCALE=4\n"
      "  - LLAMA_ARG_YARN_ORIG_CTX=32768\n  - LLAMA_ARG_CTX_SIZE=131072\n");
  expect_yarn(
      "environment:\n  LLAMA_ARG_CTX_SIZE: ${CTX:-131072}\n  EMPTY:\ncommand: "
      "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx ${ORIGINAL-32768}\n");
  expect_yarn(
      "env:\n- name: LLAMA_ARG_CTX_SIZE\n  value: \"131072\"\n- name: TOKEN\n"
      "  valueFrom: {secretKeyRef: {name: a, key: b}}\n"
      "args: [--rope-scaling, yarn, --rope-scale, 4, --yarn-orig-ctx, 32768]\n");
}

const std::string kCompose = R"(
x-common: &common
  restart: always
  environment: &variables {LLAMA_ARG_ROPE_SCALE: 4, LLAMA_ARG_YARN_ORIG_CTX: 32768}
services:
  chat:
    <<: *common
    image: ghcr.io/ggml-org/llama.cpp:server
    environment:
      <<: *variables
      LLAMA_ARG_CTX_SIZE: 262144
      LLAMA_ARG_N_PARALLEL: 2
    command: --rope-scaling yarn
    healthcheck: {test: [CMD, curl, -f, "http://localhost"]}
  redis: {image: redis, command: redis-server --appendonly yes}
)";

TEST(LaunchFile, TheServiceOfAnEngineIsFound) {
  expect_yarn(kCompose);
  expect_yarn(
      "kind: Deployment\nspec: {template: {spec: {containers: [{name: a, args: "
      "[--rope-scaling, yarn, --rope-scale, 4, --yarn-orig-ctx, 32768, -c, 131072]}]}}}\n"
      "---\nkind: Service\n");
  EXPECT_THAT([] { read(kCompose + "  more: {command: llama-server -m y -c 4096}\n"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("flags: YAML: expected one container"),
                                         HasSubstr(R"("chat", "more")"))));
  EXPECT_THAT([] { read("services:\n  redis: {command: redis-server --appendonly yes}\n"); },
              ThrowsMessage<Error>(HasSubstr(R"(but got "redis")")));
  EXPECT_THAT([] { read("a: b\n"); }, ThrowsMessage<Error>(HasSubstr("but got none")));
  EXPECT_THAT([] { read("command: --rope-scale ${SCALE}\n"); },
              ThrowsMessage<Error>(HasSubstr("flags: --rope-scale: expected a number, but got")));
  EXPECT_THAT([] { read("command: [--json-model-override-args, '{}']\nimage: lmsysorg/sglang\n"); },
              ThrowsMessage<Error>(HasSubstr("SGLang")));
}

TEST(LaunchFile, LinesAreNoYaml) {
  for (const char* line :
       {"llama-server -m x --rope-scale 4", "--rope-scale 4", "-c 4096", "A=b vllm serve x",
        R"(vllm serve x --hf-overrides '{"rope_theta": 1e6}')", "", "http://x", "a:b"}) {
    EXPECT_FALSE(looks_like_yaml(line)) << line;
  }
  for (const char* text : {"a:", "a: b", "'a b': c", "- x", "[x]", "%YAML 1.1\n---\n# c\na:\r\n"}) {
    EXPECT_TRUE(looks_like_yaml(text)) << text;
  }
}

TEST(LaunchFile, IsRefusedWithoutAParser) {
  EXPECT_THAT(
      [] { read_rope_config_bytes("command: --rope-scale 4", {}); },
      ThrowsMessage<Error>(HasSubstr("but got YAML, which only the command sextant reads")));
}

}  // namespace
}  // namespace sextant::testing
