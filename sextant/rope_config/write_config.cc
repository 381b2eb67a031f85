// Writes a configuration as flags of engines; read_flags.cc reads them.
#include "sextant/rope_config/write_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sextant/base/error.h"
#include "sextant/files/gguf.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/language_model.h"
#include "sextant/rope_config/unsupported.h"

namespace sextant {
namespace {

// The rotating groups, one per distinct rotation.
std::vector<RopeConfig> rotations(const ReadRopeConfig& read, const std::string& to) {
  std::vector<RopeConfig> groups = distinct_rotations(read.configs);
  if (!groups.empty()) return groups;
  const std::string name = read.configs.empty() ? "" : read.configs[0].model_type;
  fail("convert: " + to + ": model_type: expected a model that rotates queries and keys, but " +
       (name.empty() ? "this one" : name) + " does not");
}

const RopeConfig& only(const std::vector<RopeConfig>& groups, const std::string& to) {
  if (groups.size() == 1) return groups[0];
  fail("convert: " + to + ": expected one configuration for all layers, but got " +
       std::to_string(groups.size()));
}

// The weights in a GGUF file are in the order of pairs that llama.cpp rotates.
void warn_of_pairs(const ReadRopeConfig& read, std::vector<std::string>& warnings) {
  if (read.dialect != "GGUF" || read.configs.empty()) return;
  const RopeConfig& config = read.configs[0];
  const LlamaCppArchitecture* row = find_architecture(config.model_type);
  const auto there = row ? pairing_in_transformers(*row) : std::nullopt;
  if (!there || !config.pairing || *there == *config.pairing) return;
  warnings.push_back("llama.cpp rotates " + order_of(*config.pairing) +
                     " pairs in the architecture " + row->name + ", and transformers " +
                     order_of(*there) +
                     " ones in its models: the weights of queries and keys of the GGUF file must "
                     "be permuted to that order. " +
                     engine_fact("transformers.pairs"));
}

GgufModelSizes sizes_of(const ReadRopeConfig& read) {
  if (read.json.empty()) return {};
  const nlohmann::json config = parse_json(read.json, "config.json");
  const nlohmann::json& model = *find_language_model(config).config;
  const auto size = [&](const char* name) -> int64_t {
    const auto found = model.find(name);
    if (found == model.end() || !found->is_number_unsigned()) return 0;
    return std::min<int64_t>(found->get<int64_t>(), 65536);
  };
  return {.layers = size("num_hidden_layers"),
          .width = size("hidden_size"),
          .heads = size("num_attention_heads"),
          .dense_layers = size("first_k_dense_replace")};
}

void take_betas_of_code(RopeConfig& config, const std::string& architecture) {
  const LlamaCppArchitecture* row = find_architecture(architecture);
  auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  auto* yarn = fixed ? std::get_if<Yarn>(fixed) : nullptr;
  if (!row || row->yarn_keys.betas || !yarn) return;
  yarn->beta_fast = row->yarn_keys.beta_fast;
  yarn->beta_slow = row->yarn_keys.beta_slow;
}

// Reads the written bytes again; throws Error unless they describe the same layers.
std::string write_gguf(const ReadRopeConfig& read, std::vector<std::string>& warnings) {
  const std::string type = rotations(read, "gguf").at(0).model_type;
  const bool named = read.dialect == "GGUF";  // model_type is already an architecture
  const bool both_sides = std::ranges::any_of(read.configs, &RopeConfig::both_sides);
  const std::string architecture = named ? type : gguf_architecture(type, both_sides);
  const GgufConfig written =
      write_gguf_config(read.configs, architecture, sizes_of(read), warnings);
  std::string bytes = gguf_bytes(written.metadata, written.vectors);
  // If the code ignores the betas, a warning gives the flags for them.
  std::vector<RopeConfig> configs = read.configs;
  for (RopeConfig& config : configs) take_betas_of_code(config, architecture);
  check_same_layers(configs, read_gguf_config(parse_gguf(bytes), {}), architecture);
  return bytes;
}

using nlohmann::json;

std::string text(double value) { return json(value).dump(); }

void refuse_scaling(const RopeScaling& scaling) {
  const bool gain = scaling.type == "default" || scaling.type == "linear";
  fail("convert: llama.cpp: expected none, linear or YaRN scaling, but got " + scaling.type +
       (gain ? " with a gain of queries and keys (attn_factor), for which no flag is" : ""));
}

// The gain of vLLM below 0.30 without attn_factor: it ignores attention_factor and uses mscale only
// in latent attention. Later versions use the fields as transformers does, and ignore attn_factor
// (vllm.attention_factor in engines.json).
double vllm_gain(const RopeConfig& config, const Yarn& yarn) {
  if (!config.latent) return yarn_temperature(yarn.factor);
  return yarn_temperature(yarn.factor, yarn.mscale.value_or(1)) /
         yarn_temperature(yarn.factor, yarn.mscale_all_dim.value_or(0));
}

void check_longrope_gain(const RopeConfig& config, const DynamicStretch& dynamic,
                         const LongRope& longrope) {
  const auto length = static_cast<double>(config.max_length);
  const double factor = length / static_cast<double>(dynamic.original_length);
  if (factor >= 1 && longrope_gain(factor, dynamic.original_length) == longrope.gain) return;
  fail(
      "convert: vllm: attention_factor: expected sqrt(1 + ln(factor) / ln(original length)) with "
      "the factor max_position_embeddings / original_max_position_embeddings, as vLLM always takes "
      "that, but got " +
      text(longrope.gain));
}

// Adds fields to Hugging Face's `object` that vLLM interprets differently.
void add_what_vllm_reads(json& object, const RopeConfig& config,
                         std::vector<std::string>& warnings) {
  if (const auto* dynamic = std::get_if<DynamicStretch>(&config.scaling.stretch)) {
    const auto* longrope = std::get_if<LongRope>(&dynamic->stretch);
    if (longrope) return check_longrope_gain(config, *dynamic, *longrope);
    fail(
        "convert: vllm: dynamic: expected a fixed scaling, but got one that grows with the "
        "sequence. " +
        engine_fact("vllm.dynamic"));
  }
  const auto* yarn = std::get_if<Yarn>(&std::get<Stretch>(config.scaling.stretch));
  if (!yarn) return;
  const double rest = yarn_gain(*yarn) / vllm_gain(config, *yarn);
  if (rest == 1) return;
  if (config.latent) {
    warnings.push_back("attention_factor: vLLM reads this gain up to 0.29.0 only. " +
                       engine_fact("vllm.mscale"));
  }
  object["attn_factor"] = rest;
  object["attention_factor"] = yarn_gain(*yarn);
}

// llama.cpp has no flag for a gain.
void warn_of_gain(const Yarn& yarn, std::vector<std::string>& warnings) {
  const double own = yarn_temperature(yarn.factor), gain = yarn_gain(yarn);
  if (std::fabs(gain / own - 1) < 1e-9) return;
  warnings.push_back(
      "attention_factor: this model's is " + text(gain) +
      ", and with these flags llama.cpp takes " + text(own) +
      " unless the GGUF file says it (rope.scaling.attn_factor, which --as gguf writes). " +
      engine_fact("llama.cpp.yarn_attn_factor"));
}

// Only the GGUF file has the pairs that follow height and width; there is no flag for them.
void refuse_sections(const RopeScaling& scaling, const std::string& flags) {
  if (scaling.sections.empty()) return;
  fail(
      "convert: llama.cpp: mrope_section: expected none, as no flag says which pairs follow height "
      "and width, but got " +
      json(scaling.sections).dump() +
      "; the model's GGUF file does (rope.dimension_sections, which --as gguf writes), and beside "
      "such a file the flags are " +
      flags);
}

// Returns {"text_config": {"rope_parameters": ...}} for place "text_config".
json nested(json object, std::string place) {
  while (!place.empty()) {
    const size_t dot = place.rfind('.');
    const std::string last = dot == std::string::npos ? place : place.substr(dot + 1);
    object = json{{last, std::move(object)}};
    place = dot == std::string::npos ? "" : place.substr(0, dot);
  }
  return object;
}

// Keys come from a file and are printed within a shell's quotes.
void check_keys(const json& object) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  for (const auto& item : object.items()) {
    if (!std::ranges::all_of(item.key(), plain)) {
      fail("convert: vllm: expected keys of letters, digits, _ and -, but got " +
           shown(item.key()));
    }
    if (item.value().is_object()) check_keys(item.value());
  }
}

// Whether vLLM from 0.30 on, which does not multiply the model's length by YaRN's factor, would
// refuse the target (vllm.max_length in engines.json).
bool is_short_of(const RopeConfig& config, int64_t target) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  return fixed && std::holds_alternative<Yarn>(*fixed) && config.max_length < target;
}

}  // namespace

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to,
                              std::vector<std::string>& warnings) {
  if (to == "hf5" || to == "hf4") {
    const nlohmann::json config =
        read.json.empty() ? nlohmann::json::object() : parse_json(read.json, "config.json");
    warn_of_pairs(read, warnings);
    const int version = to == "hf4" ? 4 : 5;
    return json_as_python_writes_it(write_hugging_face(config, read.configs, version)) + "\n";
  }
  if (to != "gguf" && to != "llama.cpp" && to != "vllm") {
    fail("convert: to: expected hf5, hf4, gguf, llama.cpp or vllm, but got \"" + to + "\"");
  }
  const std::vector<RopeConfig> groups = rotations(read, to);
  if (to == "llama.cpp") return write_llama_cpp(only(groups, to), warnings) + "\n";
  if (to == "vllm") return write_vllm(groups, read.place, warnings) + "\n";
  return write_gguf(read, warnings);
}

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to) {
  std::vector<std::string> warnings;
  return write_rope_config(read, to, warnings);
}

std::string write_llama_cpp(const RopeConfig& config, std::vector<std::string>& warnings) {
  const std::string dialect = "llama.cpp";
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  if (!fixed) refuse_scaling(config.scaling);
  refuse_query_scale(config.scaling, dialect);
  refuse_dual_chunks(config, dialect);
  std::ostringstream out;
  out << "--rope-freq-base " << text(config.base);
  if (const auto* linear = std::get_if<Linear>(fixed)) {
    out << " --rope-scaling linear --rope-scale " << text(linear->factor);
  } else if (const auto* yarn = std::get_if<Yarn>(fixed)) {
    if (!yarn->truncate || yarn->ramp == Yarn::Ramp::kTurns) {
      fail("convert: llama.cpp: truncate: expected true, as its ramp has whole ends");
    }
    if (config.scaling.score_factor != 1) {
      fail("convert: llama.cpp: mscale_all_dim: expected none, as it has no flag for it");
    }
    out << " --rope-scaling yarn --rope-scale " << text(yarn->factor) << " --yarn-orig-ctx "
        << yarn->original_length << " --yarn-beta-fast " << text(yarn->beta_fast)
        << " --yarn-beta-slow " << text(yarn->beta_slow);
    warn_of_gain(*yarn, warnings);
  } else if (!std::holds_alternative<std::monostate>(*fixed)) {
    refuse_scaling(config.scaling);
  }
  refuse_plain_channels(config, dialect);
  const int64_t target = target_length(config, 0);
  if (target > 0) out << " -c " << target;
  const int64_t declared = config.serving_length > 0 ? trained_length(config) : config.max_length;
  if (std::holds_alternative<Linear>(*fixed) && target > declared) {
    warnings.push_back(
        "--rope-scale helps nothing beyond the context_length of the model's file "
        "without --override-kv ARCH.context_length=int:" +
        std::to_string(target) + ". " + engine_fact("llama.cpp.cut"));
  }
  refuse_sections(config.scaling, out.str());
  return out.str();
}

std::string write_vllm(const std::vector<RopeConfig>& groups, const std::string& place,
                       std::vector<std::string>& warnings) {
  const json config = write_hugging_face(json::object(), groups, 5);
  json object = config.at("rope_parameters");
  int64_t target = 0;
  for (const RopeConfig& group : groups) {
    refuse_query_scale(group.scaling, "vllm");
    const std::string kind = group.parameters.empty() ? group.layers : group.parameters;
    const bool by_kind = object.contains(kind) && object.at(kind).is_object();
    add_what_vllm_reads(by_kind ? object[kind] : object, group, warnings);
    target = std::max(target, target_length(group, 0));
  }
  json overrides = {{"rope_parameters", object}};
  if (std::ranges::any_of(groups, [&](const auto& one) { return is_short_of(one, target); })) {
    overrides["max_position_embeddings"] = target;
  }
  // The sizes of latent attention are kept: they give the number of rotated channels. A partial
  // factor would rotate fewer, since vLLM applies it to them.
  for (const char* size : {"qk_rope_head_dim", "qk_nope_head_dim"}) {
    if (config.contains(size)) overrides[size] = config.at(size);
  }
  const json whole = nested(overrides, place);
  check_keys(whole);
  std::string line = "--hf-overrides '" + whole.dump() + "'";
  if (target > 0) line += " --max-model-len " + std::to_string(target);
  return line;
}

}  // namespace sextant
