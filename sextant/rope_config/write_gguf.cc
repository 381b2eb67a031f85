// A setting as GGUF metadata; reading is in read_gguf.cc.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/error.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/unsupported.h"

namespace sextant {
namespace {

// Hugging Face's model_type: the name in llama.cpp's src/llama-arch.cpp, as convert_hf_to_gguf.py pairs them.
const std::map<std::string, std::string>& architectures() {
  static const std::map<std::string, std::string> all = {
      {"", "llama"},
      {"apertus", "apertus"},
      {"arcee", "arcee"},
      {"baichuan", "baichuan"},
      {"chatglm", "chatglm"},
      {"cohere", "command-r"},
      {"cohere2", "cohere2"},
      {"dbrx", "dbrx"},
      {"deepseek", "deepseek"},
      {"deepseek_v2", "deepseek2"},
      {"deepseek_v3", "deepseek2"},
      {"dots1", "dots1"},
      {"ernie4_5", "ernie4_5"},
      {"ernie4_5_moe", "ernie4_5-moe"},
      {"exaone", "exaone"},
      {"exaone4", "exaone4"},
      {"falcon", "falcon"},
      {"falcon_h1", "falcon-h1"},
      {"gemma", "gemma"},
      {"gemma2", "gemma2"},
      {"gemma3", "gemma3"},
      {"gemma3_text", "gemma3"},
      {"gemma3n", "gemma3n"},
      {"gemma3n_text", "gemma3n"},
      {"gemma4", "gemma4"},
      {"gemma4_text", "gemma4"},
      {"glm", "chatglm"},
      {"glm4", "glm4"},
      {"glm4_moe", "glm4moe"},
      {"gpt_neox", "gptneox"},
      {"gpt_oss", "gpt-oss"},
      {"gptj", "gptj"},
      {"granite", "granite"},
      {"granitemoe", "granitemoe"},
      {"hunyuan_v1_dense", "hunyuan-dense"},
      {"hunyuan_v1_moe", "hunyuan-moe"},
      {"internlm2", "internlm2"},
      {"internlm3", "llama"},
      {"kimi_k2", "deepseek2"},
      {"lfm2", "lfm2"},
      {"llama", "llama"},
      {"llama4", "llama4"},
      {"llama4_text", "llama4"},
      {"minicpm", "minicpm"},
      {"minicpm3", "minicpm3"},
      {"minimax_m2", "minimax-m2"},
      {"ministral3", "mistral3"},
      {"mistral", "llama"},
      {"mistral3", "mistral3"},
      {"mixtral", "llama"},
      {"modernbert", "modern-bert"},
      {"nemotron", "nemotron"},
      {"nomic_bert", "nomic-bert"},
      {"olmo", "olmo"},
      {"olmo2", "olmo2"},
      {"olmo3", "olmo2"},
      {"olmoe", "olmoe"},
      {"orion", "orion"},
      {"phi", "phi2"},
      {"phi3", "phi3"},
      {"phimoe", "phimoe"},
      {"qwen", "qwen"},
      {"qwen2", "qwen2"},
      {"qwen2_5_vl", "qwen2vl"},
      {"qwen2_5_vl_text", "qwen2vl"},
      {"qwen2_moe", "qwen2moe"},
      {"qwen2_vl", "qwen2vl"},
      {"qwen2_vl_text", "qwen2vl"},
      {"qwen3", "qwen3"},
      {"qwen3_5", "qwen35"},
      {"qwen3_5_moe", "qwen35moe"},
      {"qwen3_5_moe_text", "qwen35moe"},
      {"qwen3_5_text", "qwen35"},
      {"qwen3_moe", "qwen3moe"},
      {"qwen3_next", "qwen3next"},
      {"qwen3_vl", "qwen3vl"},
      {"qwen3_vl_moe", "qwen3vlmoe"},
      {"qwen3_vl_moe_text", "qwen3vlmoe"},
      {"qwen3_vl_text", "qwen3vl"},
      {"seed_oss", "seed_oss"},
      {"smollm3", "smollm3"},
      {"stablelm", "stablelm"},
      {"starcoder2", "starcoder2"},
      {"xverse", "xverse"},
  };
  return all;
}

class Writer {
 public:
  explicit Writer(std::string arch) : arch_(std::move(arch)) {
    out.metadata["general.architecture"] = arch_;
  }

  void put(const std::string& key, GgufValue value) {
    out.metadata[arch_ + "." + key] = std::move(value);
  }
  // One of which the frequencies are made must come back as it was; a gain may be rounded to float32.
  void put_exact(const std::string& key, double value) {
    check(key, value);
    put(key, value);
  }
  void put_vector(const std::string& name, const std::vector<double>& factors) {
    for (const double x : factors) {
      check(name, x);
      out.vectors[name].push_back(static_cast<float>(x));
    }
  }
  void put_length(const std::string& key, int64_t length) {
    put(key, static_cast<uint64_t>(length));
  }

  GgufConfig out;

 private:
  static void check(const std::string& key, double value) {
    if (static_cast<double>(static_cast<float>(value)) == value) return;
    fail("convert: gguf: " + key + ": expected a number that float32 holds, but got " +
         nlohmann::json(value).dump());
  }

  std::string arch_;
};

// Four numbers, 0 for axes that are not there. In what order pairs follow the axes is the architecture's
// (llama_model_rope_type()).
void write_sections(Writer& to, const std::string& arch, const RopeScaling& scaling) {
  static const std::set<std::string> blocks = {"glm4", "glm4moe", "hunyuan_vl", "paddleocr",
                                               "qwen2vl"};
  static const std::set<std::string> interleaved = {"qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"};
  if (!(scaling.interleaved_sections ? interleaved : blocks).contains(arch)) {
    fail("convert: gguf: mrope_section: expected none for the architecture " + arch +
         ", whose pairs llama.cpp does not have follow axes in that order");
  }
  if (scaling.sections.size() > 4) {
    fail("convert: gguf: mrope_section: expected at most 4 axes, but got " +
         std::to_string(scaling.sections.size()));
  }
  GgufArray sections{.numbers = {scaling.sections.begin(), scaling.sections.end()}, .count = 4};
  sections.numbers.resize(4);
  to.put("rope.dimension_sections", std::move(sections));
}

void write_longrope(Writer& to, const DynamicStretch& dynamic, const LongRope& longrope) {
  to.put("rope.scaling.type", std::string("longrope"));
  to.put_length("rope.scaling.original_context_length", dynamic.original_length);
  to.put("rope.scaling.attn_factor", longrope.gain);
  to.put_vector("rope_factors_short.weight", dynamic.short_factors);
  to.put_vector("rope_factors_long.weight", longrope.factors);
}

void write_yarn(Writer& to, const Yarn& yarn, double score_factor) {
  if (!yarn.truncate || yarn.ramp == Yarn::Ramp::kTurns) {
    fail("convert: gguf: truncate: expected true, as llama.cpp's ramp has whole ends");
  }
  to.put("rope.scaling.type", std::string("yarn"));
  to.put_exact("rope.scaling.factor", yarn.factor);
  to.put_length("rope.scaling.original_context_length", yarn.original_length);
  to.put_exact("rope.scaling.yarn_beta_fast", yarn.beta_fast);
  to.put_exact("rope.scaling.yarn_beta_slow", yarn.beta_slow);
  if (score_factor != 1) {
    if (yarn.mscale != yarn.mscale_all_dim) {
      fail("convert: gguf: mscale: expected the same as mscale_all_dim");
    }
    to.put("rope.scaling.yarn_log_multiplier", 0.1 * *yarn.mscale_all_dim);
  } else if (const double attention = yarn_gain(yarn) / yarn_temperature(yarn.factor);
             attention != 1) {
    to.put("rope.scaling.attn_factor", attention);
  }
}

// llama.cpp's converter does so too: divisors, rounded to float32.
void write_divisors(Writer& to, const RopeConfig& setting, const Stretch& stretch) {
  const Spectrum plain = rotary({.dim = setting.rotary_dim, .base = setting.base});
  const Spectrum slower = stretched(plain, stretch);
  for (size_t f = 0; f < plain.pairs.size(); ++f) {
    const Real divisor = plain.pairs[f].speed / slower.pairs[f].speed;
    to.out.vectors["rope_freqs.weight"].push_back(static_cast<float>(static_cast<double>(divisor)));
  }
}

void write_stretch(Writer& to, const RopeConfig& setting) {
  const RopeScaling& scaling = setting.scaling;
  if (const auto* dynamic = std::get_if<DynamicStretch>(&scaling.stretch)) {
    const auto* longrope = std::get_if<LongRope>(&dynamic->stretch);
    if (!longrope) fail("convert: gguf: " + scaling.type + ": expected a fixed scaling");
    return write_longrope(to, *dynamic, *longrope);
  }
  const Stretch& stretch = std::get<Stretch>(scaling.stretch);
  if (const auto* linear = std::get_if<Linear>(&stretch)) {
    to.put("rope.scaling.type", std::string("linear"));
    to.put_exact("rope.scaling.factor", linear->factor);
  } else if (const auto* yarn = std::get_if<Yarn>(&stretch)) {
    write_yarn(to, *yarn, scaling.score_factor);
  } else if (const auto* divisors = std::get_if<LongRope>(&stretch); divisors) {
    // Llama 3's, read from a GGUF file.
    if (scaling.original_length > 0) {
      to.put_length("rope.scaling.original_context_length", scaling.original_length);
    }
    to.put_vector("rope_freqs.weight", divisors->factors);
  } else if (const auto* parts = std::get_if<ByParts>(&stretch)) {
    to.put_length("rope.scaling.original_context_length", parts->original_length);
    write_divisors(to, setting, stretch);
  } else if (!std::holds_alternative<std::monostate>(stretch)) {
    fail("convert: gguf: " + scaling.type + ": expected none, linear, yarn, llama3 or longrope");
  }
}

}  // namespace

std::string gguf_architecture(const std::string& model_type) {
  const auto found = architectures().find(model_type);
  if (found != architectures().end()) return found->second;
  fail(
      "convert: gguf: model_type: expected a model that llama.cpp has an architecture for, but got "
      "\"" +
      model_type + "\", for which none is known here");
}

GgufConfig write_gguf_config(const RopeConfig& setting, const std::string& architecture) {
  refuse_query_scale(setting.scaling, "gguf");
  refuse_dual_chunks(setting, "gguf");
  Writer to(architecture);
  to.put_length("attention.key_length", setting.head_dim);
  to.put_length("rope.dimension_count", setting.rotary_dim);
  to.put_exact("rope.freq_base", setting.base);
  if (setting.max_length > 0) to.put_length("context_length", setting.max_length);
  if (!setting.scaling.sections.empty()) write_sections(to, architecture, setting.scaling);
  write_stretch(to, setting);
  return std::move(to.out);
}

}  // namespace sextant
