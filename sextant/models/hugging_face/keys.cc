#include "sextant/models/hugging_face/keys.h"

namespace sextant::hugging_face {

Keys keys_of(Family family) {
  Keys keys{.width = "hidden_size",
            .layers = "num_hidden_layers",
            .heads = "num_attention_heads",
            .key_heads = "num_key_value_heads",
            .mlp_width = "intermediate_size",
            .length = "max_position_embeddings",
            .epsilon = "rms_norm_eps",
            .activation = "hidden_act"};
  switch (family) {
    case Family::kStableLm:
      keys.epsilon = "layer_norm_eps";
      break;
    case Family::kStarcoder2:
      keys.epsilon = "norm_epsilon";
      break;
    case Family::kMpt:
      return {.width = "d_model",
              .layers = "n_layers",
              .heads = "n_heads",
              .key_heads = nullptr,
              .mlp_width = nullptr,
              .length = "max_seq_len",
              .epsilon = "layer_norm_epsilon",
              .activation = nullptr};
    case Family::kGpt2:
      return {.width = "n_embd",
              .layers = "n_layer",
              .heads = "n_head",
              .key_heads = nullptr,
              .mlp_width = "n_inner",
              .length = "n_positions",
              .epsilon = "layer_norm_epsilon",
              .activation = "activation_function"};
    default:
      break;
  }
  return keys;
}

const char* word_of(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return "gelu";
    case Activation::kSquaredRelu:
      return "relu2";
    case Activation::kSwiGlu:
      break;
  }
  return "silu";
}

}  // namespace sextant::hugging_face
