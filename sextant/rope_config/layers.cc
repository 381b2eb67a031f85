#include "sextant/rope_config/layers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace sextant {
namespace {

using nlohmann::json;

const std::string kSliding = "sliding_attention";

// Text and whole numbers in turn.
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Of layer_types, how many are of a type; of how many.
struct Share {
  int64_t with = 0, all = 0;
};

Share share_of(const json& config, const std::string& type) {
  Share share;
  const auto found = config.find("layer_types");
  if (found == config.end() || !found->is_array()) return share;
  share.all = static_cast<int64_t>(found->size());
  share.with = std::count(found->begin(), found->end(), json(type));
  return share;
}

// Models whose code has windows only where use_sliding_window says so.
bool needs_word(const std::string& type) { return type.starts_with("qwen"); }

// Models in whose first files nothing says which layers have the window that they name.
std::string usual_layers(const std::string& type, int64_t pattern) {
  if (pattern > 1) return joined("all but every ", pattern, "th layer");
  if (type == "gemma2" || type == "gpt_oss") return "every second layer";
  return "";
}

int64_t window_of(Fields& fields, const std::string& type) {
  const auto window = fields.integer("sliding_window", 1, kLongestSequence);
  const bool on = fields.flag("use_sliding_window").value_or(!needs_word(type));
  return on ? window.value_or(0) : 0;
}

void read_window(const json& config, Fields& fields, std::vector<RopeConfig>& settings) {
  const std::string type = settings.at(0).model_type;
  int64_t window = window_of(fields, type);
  std::string note;
  if (const auto both = fields.integer("local_attention", 2, kLongestSequence)) {  // ModernBERT
    window = *both / 2 + 1;
    note = "windows reach as far to the right as to the left";
  }
  if (window == 0) return;
  const Share share = share_of(config, kSliding);
  for (RopeConfig& setting : settings) {
    const bool whole = setting.layers.empty();
    if (!whole && setting.layers != kSliding) continue;
    if (share.all > 0 && share.with == 0) continue;
    setting.window = window;
    if (!note.empty()) setting.notes.push_back(note);
    if (!whole) continue;
    const auto first = fields.integer("max_window_layers", 0, kLongestSequence);
    const int64_t pattern =
        fields.integer("sliding_window_pattern", 0, kLongestSequence)
            .value_or(fields.integer("_sliding_window_pattern", 0, kLongestSequence).value_or(0));
    if (share.with < share.all) {
      setting.bounded_in = joined(share.with, " of ", share.all, " layers");
    } else if (share.all == 0 && needs_word(type) && first) {
      setting.bounded_in = joined("the layers from ", *first, " on");
    } else if (share.all == 0) {
      setting.bounded_in = usual_layers(type, pattern);
    }
    if (type == "cohere2" || type == "exaone4") {  // the window's layers are all that turn
      setting.bounded_in.clear();
      setting.notes.emplace_back(
          "only layers with the window turn queries and keys; the others know no positions");
    }
  }
}

// no_rope_layers has a 1 where a layer DOES turn.
std::string still_layers(const json& config, Fields& fields) {
  const auto found = config.find("no_rope_layers");
  if (found == config.end()) return "";
  const std::vector<int64_t> turns = fields.integers("no_rope_layers", 0, 1);
  const int64_t interval = fields.integer("no_rope_layer_interval", 1, 1 << 20).value_or(4);
  if (turns.empty()) return joined("every ", interval, "th layer");
  const auto still = std::ranges::count(turns, 0);
  return still == 0 ? "" : joined(still, " of ", turns.size(), " layers");
}

void read_still_layers(const json& config, Fields& fields, std::vector<RopeConfig>& settings) {
  const std::string still = still_layers(config, fields);
  if (still.empty()) return;
  std::string note = "queries and keys do not turn in " + still + " (NoPE)";
  const auto tuned = config.find("attn_temperature_tuning");
  if (tuned != config.end() && !tuned->is_null() && *tuned != json(false) && *tuned != json(0)) {
    note += joined("; there queries are multiplied by 1 + ",
                   fields.number("attn_scale", 0, 1e6).value_or(0.1), " ln(1 + floor((i + 1) / ",
                   fields.integer("floor_scale", 1, kLongestSequence).value_or(8192),
                   ")) at position i");
  }
  for (RopeConfig& setting : settings) setting.notes.push_back(note);
}

void read_chunks(Fields& fields, std::vector<RopeConfig>& settings) {
  if (const auto chunk = fields.integer("attention_chunk_size", 1, kLongestSequence)) {  // Llama 4
    for (RopeConfig& setting : settings) setting.chunk = *chunk;
  }
  const json* dual = fields.object("dual_chunk_attention_config");
  if (!dual) return;
  Fields own(*dual, fields.where() + ": dual_chunk_attention_config");
  const int64_t chunk = own.needed_integer("chunk_size", 1, kLongestSequence);
  const int64_t local = own.needed_integer("local_size", 0, chunk - 1);
  const auto original = own.integer("original_max_position_embeddings", 1, kLongestSequence);
  for (RopeConfig& setting : settings) {
    setting.dual_chunk = chunk;
    if (original && setting.scaling.original_length == 0) {
      setting.scaling.original_length = *original;
    }
    setting.scaling.warnings.push_back(joined(
        "dual chunk attention: keys turn by their place in chunks of ", chunk - local,
        ", and queries so that no distance is beyond ", chunk,
        " (the method dual-chunk). An engine that leaves it out, as llama.cpp and Hugging Face do, "
        "runs plain RoPE beyond what was trained"));
  }
}

}  // namespace

void read_layers(const json& config, Fields& fields, std::vector<RopeConfig>& settings) {
  read_window(config, fields, settings);
  read_chunks(fields, settings);
  read_still_layers(config, fields, settings);
}

}  // namespace sextant
