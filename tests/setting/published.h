// Configuration blocks of published models, as rotary.md has them.
#pragma once

#include <string>
#include <vector>

namespace sextant::testing {

struct Published {
  std::string name;
  std::string config;
};

inline std::vector<Published> published_configs() {
  return {
      {"llama-3.1-8b", R"({"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0,
        "max_position_embeddings": 131072, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}})"},
      {"qwen2.5-7b-yarn",
       R"({"hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1000000.0,
        "max_position_embeddings": 131072, "rope_scaling": {"type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 32768}})"},
      {"deepseek-v3",
       R"({"model_type": "deepseek_v3", "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "rope_theta": 10000, "max_position_embeddings": 163840, "rope_scaling": {"type": "yarn",
        "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
        "mscale": 1.0, "mscale_all_dim": 1.0}})"},
      {"gpt-oss", R"({"head_dim": 64, "rope_theta": 150000, "max_position_embeddings": 131072,
        "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 4096, "truncate": false}})"},
      {"vicuna-16k", R"({"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000.0,
        "max_position_embeddings": 4096, "rope_scaling": {"factor": 4.0, "type": "linear"}})"},
      {"codellama-7b", R"({"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1000000,
        "max_position_embeddings": 16384, "rope_scaling": null})"},
      {"internlm2", R"({"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1000000,
        "max_position_embeddings": 32768, "rope_scaling": {"type": "dynamic", "factor": 2.0}})"},
      {"phi-3-128k", R"({"hidden_size": 8, "num_attention_heads": 1, "rope_theta": 10000.0,
        "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.05, 1.1, 1.25],
        "long_factor": [1.08, 1.1, 32.5, 64.75]}})"},
      {"gemma-3", R"({"head_dim": 256, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
        "max_position_embeddings": 131072, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}})"},
      {"gemma-4", R"({"head_dim": 512, "max_position_embeddings": 131072, "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
        "rope_theta": 1000000.0}, "sliding_attention": {"rope_type": "default",
        "rope_theta": 10000.0}}})"},
      {"qwen2-vl", R"({"hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1000000.0,
        "max_position_embeddings": 32768, "rope_scaling": {"type": "mrope",
        "mrope_section": [16, 24, 24]}})"},
      {"ministral-3", R"({"text_config": {"head_dim": 128, "max_position_embeddings": 262144,
        "rope_parameters": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0,
        "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 16384, "rope_theta": 1000000.0, "rope_type": "yarn",
        "type": "yarn"}}})"},
      {"yarn-beta1-beta1",
       R"({"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "rope_theta": 50000.0,
        "max_position_embeddings": 131072, "rope_scaling": {"type": "yarn", "factor": 32.0,
        "original_max_position_embeddings": 4096, "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0,
        "mscale_all_dim": 1.0}})"},
      {"gpt-neox-partial", R"({"hidden_size": 6144, "num_attention_heads": 64, "rotary_pct": 0.25,
        "rotary_emb_base": 10000, "max_position_embeddings": 2048})"},
      {"qwen-1", R"({"hidden_size": 4096, "num_attention_heads": 32, "rotary_emb_base": 10000,
        "seq_length": 8192, "use_dynamic_ntk": true, "use_logn_attn": true})"},
  };
}

}  // namespace sextant::testing
