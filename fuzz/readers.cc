#include "fuzz/readers.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "sextant/attention/kv_cache.h"
#include "sextant/attention/packed.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/gguf.h"
#include "sextant/files/npy.h"
#include "sextant/files/saved_cache.h"
#include "sextant/lab/checkpoint.h"
#include "sextant/models/safetensors.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"

namespace sextant::fuzz {
namespace {

// Small, so that a mutated size is often one that could be meant.
constexpr KvCacheShape kCacheShape = {
    .key_heads = 1, .key_columns = 4, .value_columns = 2, .page_rows = 16};

void read_saved_cache(const std::string& bytes) {
  KvCacheShape shape = kCacheShape;
  shape.format = cache_file_shape(bytes).format;
  KvCache cache(shape);
  cache_file(cache, add_cache_file(bytes, cache));
}

std::vector<std::string> saved_caches() {
  KvCacheShape narrow_shape = kCacheShape;
  narrow_shape.format = Format::kBfloat16;
  KvCache cache(kCacheShape), narrow(narrow_shape);
  std::vector<float> rows(20 * 4, 0.5F);
  const std::optional<Rotation> ways[] = {std::nullopt, rotation(rotary({.dim = 4}))};
  std::vector<std::string> files;
  for (const auto& turned_by : ways)
    for (const int64_t count : {0, 1, 20}) {
      const int64_t text = cache.add(-3, turned_by);
      cache.append(text, packed<const float>(rows.data(), 1, 1, count, 4),
                   packed<const float>(rows.data(), 1, 1, count, 2));
      files.push_back(cache_file(cache, text));
    }
  const int64_t text = narrow.add();
  narrow.append(text, packed<const float>(rows.data(), 1, 1, 20, 4),
                packed<const float>(rows.data(), 1, 1, 20, 2));
  files.push_back(cache_file(narrow, text));
  return files;
}

void seal_saved_cache(std::string& bytes) {
  const auto seal = [&](size_t first, size_t last) {
    const uint32_t crc = crc32(0, std::string_view(bytes).substr(first, last - first));
    std::memcpy(bytes.data() + last, &crc, sizeof crc);
  };
  if (bytes.size() >= 68) seal(0, 64);
  if (bytes.size() >= 76) seal(72, bytes.size() - 4);
}

void read_gguf(const std::string& bytes) { parse_gguf(bytes); }

std::vector<std::string> ggufs() {
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
          gguf_bytes({}, {})};
}

void read_safetensors(const std::string& bytes) { parse_safetensors(bytes); }

std::vector<std::string> safetensors() {
  const std::string data(24, '\1');
  return {safetensors_file({.tensors = {{"a", "F32", {2, 3}, data}, {"b.c", "I64", {}, "01234567"}},
                            .metadata = {{"format", "pt"}}}),
          safetensors_file({})};
}

// What `sextant explain` does with a file.
void explain_bytes(const std::string& bytes) {
  for (const RopeConfig& setting : read_rope_config_bytes(bytes, {}).settings)
    explain(setting, 8192);
}

std::vector<std::string> settings() {
  std::vector<std::string> all = ggufs();
  all.pop_back();  // names no architecture
  for (const char* text :
       {R"({"hidden_size": 128, "num_attention_heads": 2, "rope_theta": 1000000.0,
            "max_position_embeddings": 32768, "rope_scaling": {"type": "yarn", "factor": 4.0,
            "original_max_position_embeddings": 8192, "beta_fast": 32, "truncate": false}})",
        R"({"head_dim": 8, "max_position_embeddings": 131072, "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5,
            "rope_theta": 1e6}, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})",
        R"({"hidden_size": 8, "num_attention_heads": 1, "rope_theta": 10000.0,
            "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
            "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.05, 1.1, 1.25],
            "long_factor": [1.08, 1.1, 32.5, 64.75]}})"})
    all.emplace_back(text);
  return all;
}

// Flags do not say the size of heads.
void explain_flags(const std::string& bytes) {
  for (const RopeConfig& setting :
       read_rope_config_bytes(bytes, {.base = 10000, .head_dim = 128}).settings)
    explain(setting, 8192);
}

std::vector<std::string> flags() {
  return {
      "llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 --rope-freq-base 1e6",
      "--rope-freq-scale 0.25",
      R"(vllm --rope-scaling '{"rope_type":"yarn","factor":4.0,
             "original_max_position_embeddings":32768}' --rope-theta 1e6)",
      "vllm serve m --hf-overrides.rope_parameters.rope_type yarn "
      "--hf-overrides.rope_parameters.factor 4.0 --max-model-len 128K",
      R"(vllm --max-model-len 4096 --hf-overrides '{"text_config": {"rope_theta": 500}}')",
      "-c 131072 --rope-scaling yarn --rope-scale 4 --yarn-attn-factor 0.5"};
}

void read_npy(const std::string& bytes) {
  parse_npy({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "a file");
}

std::vector<std::string> npys() {
  using namespace std::string_literals;
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }";
  std::string padded = header;
  padded.resize(118 - 1, ' ');
  return {"\x93NUMPY\x01\x00\x76\x00"s + padded + "\n" + std::string(16, '\2')};
}

void read_checkpoint(const std::string& bytes) { lab::parse_checkpoint(bytes); }

std::vector<std::string> checkpoints() {
  return {lab::checkpoint_file(
      {.step = 7, .belongs_to = "{}", .sections = {{"weights", "0123456789"}, {"empty", ""}}})};
}

void seal_checkpoint(std::string& bytes) {
  const auto put_crc = [&](size_t at, uint32_t crc) {
    std::memcpy(bytes.data() + at, &crc, sizeof crc);
  };
  if (bytes.size() < 64 + 16) return;
  const std::string_view view = bytes;
  put_crc(60, crc32(0, view.substr(0, 60)));
  // One chunk, up to its checksum and the footer of 12 bytes.
  std::string place(view.substr(16, 8));
  place.append(8, '\0');
  put_crc(bytes.size() - 16, crc32(crc32(0, place), view.substr(64, bytes.size() - 80)));
  put_crc(bytes.size() - 4, crc32(0, view.substr(0, bytes.size() - 4)));
}

constexpr Reader kReaders[] = {
    {"saved-cache", read_saved_cache, saved_caches, seal_saved_cache},
    {"gguf", read_gguf, ggufs},
    {"safetensors", read_safetensors, safetensors},
    {"setting", explain_bytes, settings},
    {"flags", explain_flags, flags},
    {"npy", read_npy, npys},
    {"checkpoint", read_checkpoint, checkpoints, seal_checkpoint},
};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

}  // namespace sextant::fuzz
