#include "fuzz/rope_config_samples.h"

#include <cstdint>

#include "sextant/files/gguf.h"

namespace sextant::fuzz {
namespace {

// Configurations that use the families' tables: kinds of layers by expression, lists and objects by
// layer, latent heads, lists of divisors, a language model within another object, no rotation.
constexpr const char* kConfigs[] = {
    R"({"hidden_size": 128, "num_attention_heads": 2, "rope_theta": 1000000.0,
        "max_position_embeddings": 32768, "rope_scaling": {"type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 8192, "beta_fast": 32, "truncate": false}})",
    R"({"head_dim": 8, "max_position_embeddings": 131072, "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5,
        "rope_theta": 1e6}, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})",
    R"({"hidden_size": 8, "num_attention_heads": 1, "rope_theta": 10000.0,
        "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.05, 1.1, 1.25],
        "long_factor": [1.08, 1.1, 32.5, 64.75]}})",
    R"({"model_type": "gemma3_text", "head_dim": 16, "num_hidden_layers": 7,
        "sliding_window": 512, "sliding_window_pattern": 3, "query_pre_attn_scalar": 168,
        "rope_theta": 1000000, "rope_local_base_freq": 10000, "max_position_embeddings": 32768,
        "use_bidirectional_attention": true,
        "rope_scaling": {"rope_type": "linear", "factor": 8}})",
    R"({"model_type": "gemma4_text", "num_hidden_layers": 6, "head_dim": 16,
        "per_layer_config": {"05": {"head_dim": 32}, "1": {"head_dim": 8, "sliding_window": 64}},
        "sliding_window": 128, "use_bidirectional_attention": "all", "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000}, "full_attention": {
        "rope_type": "proportional", "rope_theta": 1000000, "partial_rotary_factor": 0.25}}})",
    R"({"model_type": "llama4_text", "head_dim": 16, "num_hidden_layers": 8,
        "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0], "attention_chunk_size": 8192,
        "floor_scale": 8192, "attn_scale": 0.1, "rope_theta": 500000})",
    R"({"model_type": "deepseek_v3", "num_hidden_layers": 3, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16, "rope_interleave": true, "rope_theta": 10000,
        "max_position_embeddings": 163840, "rope_scaling": {"type": "yarn", "factor": 40,
        "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}})",
    R"({"model_type": "glm", "num_hidden_layers": 2, "head_dim": 16,
        "partial_rotary_factor": 0.5, "max_position_embeddings": 8192})",
    R"({"model_type": "muse_spark_text", "head_dim": 16, "num_hidden_layers": 5,
        "layer_rope_theta": [500000, 500000, 500000, 0, 500000], "qk_scale_factor": 5.5,
        "sliding_window": 2048, "max_position_embeddings": 1048576})",
    R"({"model_type": "phi3", "hidden_size": 16, "num_attention_heads": 2,
        "sliding_window": 2047, "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096, "rope_scaling": {"type": "longrope",
        "short_factor": [1.0, 1.05, 1.1, 1.25], "long_factor": [1.08, 1.1, 32.5, 64.75]}})",
    R"({"model_type": "step3p5", "num_hidden_layers": 3, "head_dim": 16,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        "rope_theta": [10000, 5e6, 1e4], "partial_rotary_factors": [0.5, 1.0, 0.25],
        "sliding_window": 512})",
    R"({"model_type": "gemma3", "vision_config": {"hidden_size": 64, "patch_size": 14},
        "text_config": {"head_dim": 16, "num_hidden_layers": 6, "sliding_window": 64,
        "attention_dropout": NaN}})",
    R"({"model_type": "unlisted", "inner": {"hidden_size": 32, "num_attention_heads": 2,
        "vocab_size": 7, "rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "factor": 2},
        "max_position_embeddings": 2048}, "image": {"hidden_size": 8}})",
    R"({"model_type": "bloom", "n_head": 16, "alibi_bias_max": 8})",
    R"({"model_type": "granitemoehybrid", "layers_block_type": ["mamba", "attention"],
        "hidden_size": 64, "num_attention_heads": 2, "attention_multiplier": 0.0078125,
        "position_embedding_type": "rope"})",
    R"({"head_dim": 8, "rope_theta": 1e4, "use_logn_attn": true, "seq_length": 2048,
        "max_position_embeddings": 8192, "dual_chunk_attention_config": {"chunk_size": 256,
        "local_size": 64, "original_max_position_embeddings": 1024}})",
    R"({"head_dim": 12, "rope_theta": 1e4, "model_type": "qwen2_vl", "rope_scaling": {
        "type": "mrope", "mrope_section": [1, 2, 3]}})"};

}  // namespace

std::vector<std::string> gguf_samples() {
  return {gguf_bytes({{"general.architecture", std::string("llama")},
                      {"llama.attention.head_count", uint64_t{32}},
                      {"llama.context_length", uint64_t{8192}},
                      {"llama.embedding_length", uint64_t{192}},
                      {"llama.rope.freq_base", 1e6},
                      {"llama.rope.scaling.type", std::string("yarn")},
                      {"llama.rope.scaling.factor", 8.0},
                      {"llama.rope.scaling.original_context_length", uint64_t{1024}},
                      {"some.flag", true}},
                     {{"rope_freqs.weight", {1, 1.5F, 8}}}),
          gguf_bytes({{"general.architecture", std::string("mistral3")},
                      {"mistral3.attention.key_length", uint64_t{8}},
                      {"mistral3.attention.temperature_scale", 0.1},
                      {"mistral3.context_length", uint64_t{8192}},
                      {"mistral3.rope.freq_base", 1e6},
                      {"mistral3.rope.scaling.type", std::string("yarn")},
                      {"mistral3.rope.scaling.factor", 8.0},
                      {"mistral3.rope.scaling.yarn_log_multiplier", 1.0},
                      {"mistral3.rope.scaling.original_context_length", uint64_t{1024}}},
                     {}),
          gguf_bytes({{"general.architecture", std::string("gemma4")},
                      {"gemma4.block_count", uint64_t{4}},
                      {"gemma4.attention.key_length", uint64_t{8}},
                      {"gemma4.attention.key_length_swa", uint64_t{4}},
                      {"gemma4.attention.sliding_window", uint64_t{64}},
                      {"gemma4.attention.sliding_window_pattern",
                       GgufArray{.numbers = {1, 0, 1, 1}, .count = 4}},
                      {"gemma4.rope.freq_base", 1e6},
                      {"gemma4.rope.freq_base_swa", 1e4},
                      {"gemma4.rope.dimension_count_swa", uint64_t{4}}},
                     {{"rope_freqs.weight", {1, 1, 1e30F, 1e30F}}}),
          gguf_bytes({{"general.architecture", std::string("llama4")},
                      {"llama4.block_count", uint64_t{8}},
                      {"llama4.attention.key_length", uint64_t{8}},
                      {"llama4.attention.sliding_window", uint64_t{8192}},
                      {"llama4.context_length", uint64_t{65536}},
                      {"llama4.rope.freq_base", 5e5}},
                     {}),
          gguf_bytes({{"general.architecture", std::string("deepseek2")},
                      {"deepseek2.attention.key_length_mla", uint64_t{24}},
                      {"deepseek2.attention.kv_lora_rank", uint64_t{8}},
                      {"deepseek2.rope.dimension_count", uint64_t{8}},
                      {"deepseek2.context_length", uint64_t{163840}},
                      {"deepseek2.rope.freq_base", 1e4},
                      {"deepseek2.rope.scaling.type", std::string("yarn")},
                      {"deepseek2.rope.scaling.factor", 40.0},
                      {"deepseek2.rope.scaling.original_context_length", uint64_t{4096}},
                      {"deepseek2.rope.scaling.yarn_log_multiplier", 0.1}},
                     {}),
          gguf_bytes(
              {{"general.architecture", std::string("qwen2vl")},
               {"qwen2vl.attention.key_length", uint64_t{12}},
               {"qwen2vl.rope.freq_base", 1e6},
               {"qwen2vl.rope.dimension_sections", GgufArray{.numbers = {1, 2, 3, 0}, .count = 4}}},
              {}),
          gguf_bytes({{"general.architecture", std::string("phi3")},
                      {"phi3.attention.key_length", uint64_t{4}},
                      {"phi3.context_length", uint64_t{131072}},
                      {"phi3.rope.freq_base", 1e4},
                      {"phi3.rope.scaling.original_context_length", uint64_t{4096}},
                      {"phi3.rope.scaling.attn_factor", 1.25}},
                     {{"rope_factors_short.weight", {1, 1.25F}},
                      {"rope_factors_long.weight", {1.5F, 32}}}),
          gguf_bytes({{"general.architecture", std::string("bloom")},
                      {"bloom.attention.head_count", uint64_t{16}}},
                     {}),
          gguf_bytes({}, {})};
}

std::vector<std::string> config_samples() {
  std::vector<std::string> all = gguf_samples();
  all.pop_back();  // without an architecture
  all.insert(all.end(), std::begin(kConfigs), std::end(kConfigs));
  return all;
}

std::vector<std::string> flag_samples() {
  return {
      "llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 --rope-freq-base 1e6",
      "--rope-freq-scale 0.25",
      R"(vllm --rope-scaling '{"rope_type":"yarn","factor":4.0,
             "original_max_position_embeddings":32768}' --rope-theta 1e6)",
      "vllm serve m --hf-overrides.rope_parameters.rope_type yarn "
      "--hf-overrides.rope_parameters.factor 4.0 --max-model-len 128K "
      "--hf-overrides.rope_parameters.original_max_position_embeddings 32768",
      R"(vllm --max-model-len 4096 --hf-overrides '{"text_config": {"rope_theta": 500}}')",
      "-c 131072 --rope-scaling yarn --rope-scale 4 --yarn-attn-factor 0.5",
      "x: &x {LLAMA_ARG_CTX_SIZE: 8192}\nservices:\n  a:\n    command: [--rope-scale, 2]\n"
      "    environment: {<<: *x}\n    env:\n    - name: LLAMA_ARG_N_PARALLEL\n      value: "
      "${N:-2}\n"
      "  b: {image: redis}\n"};
}

std::vector<std::string> family_samples() {
  return {
      R"json({"code": "transformers", "version": "5.24.0", "families": [
{"types": ["a_text", "b"], "source": "models/a/modeling_a.py", "code": "own", "version": "2",
 "names": {"hidden_size": "d_model", "rope_theta": "attn_config.rope_theta"},
 "defaults": {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 6,
  "head_dim": {"is": "hidden_size // num_attention_heads"}, "rope_theta": 10000.0,
  "sliding_window": 512, "rope_parameters": {"rope_type": "yarn", "factor": 4,
  "original_max_position_embeddings": 2048}},
 "rotates": "(n - 1 - i) % 4 != 0", "kind": "kind",
 "layer_types": "'sliding_attention' if (i + 1) % 2 else 'full_attention'",
 "base": "1000000 if kind == 'full_attention' else rope_theta", "part": "1",
 "head_dim": "head_dim if not nested else 2 * head_dim", "rotary_dim": "head_dim",
 "scaled": "kind != 'sliding_attention'", "window": "sliding_window if i in [0, 2, 4] else 0",
 "chunk": "len([1, 2]) * 64", "softmax_scale": "head_dim ** -0.5", "scales_scores": "true",
 "pairing": "'interleaved' if rope_interleave else 'half-split'", "first_channel": "0",
 "query_law": [{"when": "not rotates", "law": "llama4", "length": "max(8192, 1)",
  "strength": "0.1"}, {"when": "i == 2", "words": "trained"}],
 "scaling_defaults": {"attention_factor": 1}, "not_layers": ["mlp"],
 "ignores": ["partial_rotary_factor"], "unrelated": ["linear_head_dim"],
 "notes": [{"when": "sliding_window", "say": "a note"}], "warnings": {"say": "a warning"}},
{"types": ["a"], "source": "models/a/modeling_a.py", "language_model": ["text_config", "llm"],
 "defaults": {"model_type": "a_text"}},
{"types": ["c"], "source": "models/c/modeling_c.py", "instead": "alibi"}],
"unrotated": {"t5": {"e": ["e", "f"]}}, "wrappers": {"text_config": {"g": {"g": "a_text", "h": ""}}}
})json",
      R"json({"version": "1", "code": "c", "families": [{"types": ["d"], "source": "d.py",
 "defaults": {"head_dim": 8, "rope_theta": 500, "num_hidden_layers": 3,
  "by_layer": {"is": "[1, 0, 2]"}}, "rotates": "by_layer[i]", "window": "by_layer[-1]",
 "head_dim": "min(16, 8 * (i + 1) ** 2)", "pairing": "'half-split'"
}]
})json"};
}

std::vector<std::string> expression_samples() {
  return {"'full' if i < 2 or i % 4 == 1 or i == n - 1 else 'sliding'",
          "list[i] if list else (i + 1) % interval != 0",
          "by_layer[i].head_dim if by_layer != null and nested else 7 // 2 + -7 % 3",
          "2 ** -0.5 * number / max(len(list), 2) + min(1, i) - int(2.9)",
          "(not absent and [1, 'a', true][-1]) in [1, null, list[0]]",
          "kind not in ['sliding_attention', kind] or object.a.b >= -1.5e3",
          "'hybrid' if i in [6, 12, 18] else null if i <= 3 else number"};
}

}  // namespace sextant::fuzz
