// llama.cpp's behaviour for an architecture of GGUF files, from families/llama.cpp.json: facts that
// its code decides and the file lacks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sextant/position/spectrum.h"

namespace sextant {

struct LlamaCppArchitecture {
  // The layers that rotate.
  enum class Rotates {
    kAll,
    kAllButEvery4th,       // except layers 3, 7, ...
    kAllButEvery4thFrom0,  // except layers 0, 4, ... if there is a window
    kWindows,              // layers with the window
    kWindowsOrAll,         // layers with the window, or all if there is none
    kWindowsAndDense,      // layers with the window, and the leading dense layers
    kFinetuned,            // all, unless rope.scaling.finetuned is false
    kPattern,              // by attention.rope_pattern
  };
  struct Window {
    int64_t pattern = 0;  // one of so many layers sees all keys; 0: only the file gives them
    bool full_first = false;
    int64_t size = 0;         // if the file has none
    int64_t if_layers = 0;    // only models with so many layers have it; 0: all
    double local_base = 0;    // for windowed layers if the file has none; 0: that of the others
    bool scaled = false;      // whether the scaling affects layers with the window
    bool own_base = false;    // whether rope.freq_base_swa is read
    bool chunks = false;      // chunks instead of windows
    bool both_sides = false;  // half of the size to each side
    int64_t fixed = 0;        // the size whatever positive one the file has; 0: the file's
    bool everywhere = false;  // all layers have the window
    bool gain = true;         // whether rope.scaling.attn_factor affects layers with the window
  };
  // Whether rope.scaling.yarn_beta_fast, _beta_slow and _ext_factor are read, and the values used
  // without them.
  struct YarnKeys {
    bool betas = false, ext_factor = false;
    double beta_fast = 32, beta_slow = 1;
  };
  std::string name;
  std::vector<std::string> types;  // Hugging Face's model_type values of this architecture
  std::string source;              // "src/models/llama.cpp"
  bool runs = true;                // false: llama.cpp has the name but no model for it
  std::string instead;             // if nothing rotates: see RopeConfig::instead
  // The method by the number of layers, "rotates" among them; 0: any other number.
  std::map<int64_t, std::string> by_layers;
  std::string instead_key;     // `instead` holds only if this key is positive
  std::string learned_tensor;  // a file that has this tensor has learned vectors
  std::optional<Pairing> pairing;
  std::string axes;         // order of M-RoPE's axes: "blocks", "interleaved", or empty
  bool needs_axes = false;  // llama.cpp runs no file without rope.dimension_sections
  Rotates rotates = Rotates::kAll;
  std::optional<Window> window;
  YarnKeys yarn_keys;
  // rope.scaling.yarn_log_multiplier is mscale_all_dim times this; 0: the key is not read.
  double log_unit = 0;
  bool scales_scores = false;      // the square of T(mscale) multiplies all scores
  bool mscale_is_all_dim = false;  // mscale equals mscale_all_dim, else 1
  bool temperature_keys = false;   // attention.temperature_scale is read
  double law_strength = 0;         // Llama 4's query law in the code
  int64_t law_length = 0;
  double softmax_scale = 0;            // in the code; 0: 1 / sqrt(key_length)
  std::string scale_key;               // a key that gives it instead
  bool attention_scale = false;        // attention.scale is read
  bool scale_in_weights = false;       // the converter moves another factor into a norm's weights
  int64_t layers_scaled_by_width = 0;  // with so many layers: sqrt(head_count / embedding_length)
  bool divisors_in_full_only = false;
  bool alpha = false;  // rope.scaling.alpha is read
};

// A program that writes GGUF files which llama.cpp does not run, or runs with other positions.
struct OtherProgram {
  std::string name, source;
  std::map<std::string, std::string> architectures;  // its names -> llama.cpp's, or ""
  std::vector<std::string> keys;                     // without the architecture's prefix
  // The base that it takes if rope.freq_base is missing, for architectures for which llama.cpp's
  // converter always writes that key.
  std::map<std::string, double> bases;
  std::string advice;  // what to do with such a file
};
const std::vector<OtherProgram>& other_programs();

// The row of the table; null: not audited.
const LlamaCppArchitecture* find_architecture(const std::string& name);

// The row to which Hugging Face's model_type is converted; of several the one whose windows reach
// to both sides or do not. Null if none is known.
const LlamaCppArchitecture* architecture_of(const std::string& model_type, bool both_sides);

// The order of pairs in transformers' models of this architecture; empty if it is not known,
// differs between them or depends on a field.
std::optional<Pairing> pairing_in_transformers(const LlamaCppArchitecture& row);

// "llama.cpp 0c1e57098".
std::string llama_cpp_version();

}  // namespace sextant
