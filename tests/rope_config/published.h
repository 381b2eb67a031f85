// Position fields of configurations of published models, and some whole files (marked). Gemma 3 12B
// and 4, OLMo 3, Qwen2.5-1M and HunYuan were checked against files and code that quote them; the
// others are from rotary.md, some of them from memory (its section 10).
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
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, )"
                       R"("rope_type": "llama3"}})"},
      // The model card's block, in the file of Qwen2.5-7B-Instruct.
      {"qwen2.5-7b-yarn",
       R"({"hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1000000.0,
        "max_position_embeddings": 32768, "rope_scaling": {"type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 32768}})"},
      {"deepseek-v3",
       R"({"model_type": "deepseek_v3", "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "rope_theta": 10000, "max_position_embeddings": 163840, "rope_scaling": {"type": "yarn",
        "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
        "mscale": 1.0, "mscale_all_dim": 1.0}})"},
      {"gpt-oss",
       R"({"model_type": "gpt_oss", "sliding_window": 128, "head_dim": 64, "rope_theta": 150000,)"
       R"( "max_position_embeddings": 131072,
        "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 4096, "truncate": false}})"},
      {"vicuna-16k", R"({"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000.0,
        "max_position_embeddings": 4096, "rope_scaling": {"factor": 4.0, "type": "linear"}})"},
      {"codellama-7b", R"({"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1000000,
        "max_position_embeddings": 16384, "rope_scaling": null})"},
      {"internlm2", R"({"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1000000,
        "max_position_embeddings": 32768, "rope_scaling": {"type": "dynamic", "factor": 2.0}})"},
      // Phi-3's field names and lengths, with 4 invented divisors in place of its 48.
      {"phi-3-128k", R"({"hidden_size": 8, "num_attention_heads": 1, "rope_theta": 10000.0,
        "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.05, 1.1, 1.25],
        "long_factor": [1.08, 1.1, 32.5, 64.75]}})"},
      // As saved by transformers 4: the released file leaves its bases and its size of heads to the
      // code.
      {"gemma-3", R"({"model_type": "gemma3_text", "head_dim": 256, "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0, "max_position_embeddings": 131072, "sliding_window": 1024,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}})"},
      {"gemma-4-12b", R"({"model_type": "gemma4_text", "hidden_size": 3840, "head_dim": 256,
        "global_head_dim": 512, "num_attention_heads": 16, "num_key_value_heads": 8,
        "num_global_key_value_heads": 1, "sliding_window": 1024, "max_position_embeddings": 262144,
        "rope_parameters": {"full_attention": {"rope_type": "proportional",
        "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}, "sliding_attention": {
        "rope_type": "default", "rope_theta": 10000.0}}})"},
      // YaRN applies to the layers without a window only.
      {"olmo-3-7b", R"({"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 32, "sliding_window": 4096, "max_position_embeddings": 65536,
        "rope_theta": 500000, "rope_scaling": {"attention_factor": 1.2079441541679836,
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
        "original_max_position_embeddings": 8192, "rope_type": "yarn"}})"},
      {"qwen2.5-7b-1m", R"({"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28,
        "num_key_value_heads": 4, "max_position_embeddings": 1010000, "rope_theta": 10000000.0,
        "dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192,
        "original_max_position_embeddings": 262144}})"},
      {"hunyuan-large", R"({"model_type": "hunyuan", "hidden_size": 6400,
        "num_attention_heads": 80, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "rope_theta": 10000.0, "rope_scaling": {"alpha": 1000.0, "factor": 1.0,
        "type": "dynamic"}})"},
      {"llama-4-scout", R"({"model_type": "llama4_text", "head_dim": 128, "hidden_size": 5120,
        "num_attention_heads": 40, "num_key_value_heads": 8, "attention_chunk_size": 8192,
        "no_rope_layers": [], "attn_temperature_tuning": true, "attn_scale": 0.1,
        "floor_scale": 8192, "max_position_embeddings": 10485760, "rope_theta": 500000.0,
        "rope_scaling": {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"}})"},
      {"qwen2-vl", R"({"model_type": "qwen2_vl", "hidden_size": 3584, "num_attention_heads": 28,
        "rope_theta": 1000000.0, "max_position_embeddings": 32768, "sliding_window": 32768,
        "use_sliding_window": false, "max_window_layers": 28, "rope_scaling": {"type": "mrope",
        "mrope_section": [16, 24, 24]}})"},
      {"qwen3-vl-8b", R"({"model_type": "qwen3_vl", "text_config": {
        "model_type": "qwen3_vl_text", "head_dim": 128, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 262144,
        "rope_theta": 5000000, "rope_scaling": {"mrope_interleaved": true,
        "mrope_section": [24, 20, 20], "rope_type": "default"}}})"},
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
      // Whole files, with the fields that are unrelated to positions.
      {"llama-2-7b", R"({"architectures": ["LlamaForCausalLM"], "bos_token_id": 1,
        "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008,
        "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1,
        "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "use_cache": true,
        "vocab_size": 32000})"},
      {"llama-3.2-1b", R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
        "head_dim": 64, "hidden_size": 2048, "max_position_embeddings": 131072,
        "model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 8,
        "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
        "tie_word_embeddings": true, "vocab_size": 128256})"},
      {"mistral-7b", R"({"architectures": ["MistralForCausalLM"], "hidden_size": 4096,
        "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
        "num_key_value_heads": 8, "rope_theta": 10000.0, "sliding_window": 4096})"},
      {"qwen3-8b", R"({"architectures": ["Qwen3ForCausalLM"], "head_dim": 128,
        "hidden_size": 4096, "max_position_embeddings": 40960, "max_window_layers": 36,
        "model_type": "qwen3", "num_attention_heads": 32, "num_key_value_heads": 8,
        "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
        "use_sliding_window": false})"},
      {"yarn-llama-2-7b-64k", R"({"architectures": ["LlamaForCausalLM"],
        "auto_map": {"AutoConfig": "configuration_llama.LlamaConfig"}, "hidden_size": 4096,
        "max_position_embeddings": 65536, "model_type": "llama", "num_attention_heads": 32,
        "rope_scaling": {"factor": 16.0, "original_max_position_embeddings": 4096, "type": "yarn",
        "finetuned": true}, "rope_theta": 10000.0})"},
      {"deepseek-v2-lite", R"({"architectures": ["DeepseekV2ForCausalLM"], "hidden_size": 2048,
        "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v2",
        "num_attention_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40,
        "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096,
        "type": "yarn"}, "rope_theta": 10000, "v_head_dim": 128})"},
      {"glm-4-9b", R"({"architectures": ["GlmForCausalLM"], "attention_bias": true,
        "head_dim": 128, "hidden_size": 4096, "max_position_embeddings": 131072,
        "model_type": "glm", "num_attention_heads": 32, "num_key_value_heads": 2,
        "partial_rotary_factor": 0.5, "rope_theta": 10000.0})"},
      {"falcon-7b", R"({"alibi": false, "architectures": ["FalconForCausalLM"],
        "hidden_size": 4544, "max_position_embeddings": 2048, "model_type": "falcon",
        "multi_query": true, "num_attention_heads": 71, "parallel_attn": true,
        "rope_theta": 10000.0})"},
      {"qwen-1", R"({"hidden_size": 4096, "num_attention_heads": 32, "rotary_emb_base": 10000,
        "seq_length": 8192, "use_dynamic_ntk": true, "use_logn_attn": true})"},
  };
}

}  // namespace sextant::testing
