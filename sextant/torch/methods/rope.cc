// rope: queries and keys are turned by an angle that grows with their position.
//
// Su et al. 2021 (arXiv 2104.09864): pair f of a query or key at position t is turned by t theta_f,
// theta_f = base^(-2f/R), so that a score depends on the distance of the two only. R = dim channels
// turn, the first ones; the rest pass through (partial rotary: GPT-J, GPT-NeoX, Phi).
//
// Pairs are (2f, 2f + 1), "interleaved": the paper, GPT-J, Meta's Llama weights; or (f, f + R/2),
// "half-split": GPT-NeoX and everything in Hugging Face's layout, the default. The frequencies are the
// same, so weights convert by a permutation of the rows of W_q and W_k; forgetting it ruins a model.
#include <nlohmann/json_fwd.hpp>

#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/options.h"

namespace sextant {
namespace {

class Rope final : public Method {
 public:
  explicit Rope(Rotation rotation) : rotation_(std::move(rotation)) {}

  void place(Operands& operands, const Placement& placement, int64_t, Parameters) const override {
    for (SweepOperand& sweep : operands.sweeps) {
      sweep.rotation = rotation_;
      sweep.query_times = query_positions(placement).view({1, 1, -1});
      sweep.key_times = key_positions(placement).view({1, 1, -1});
    }
  }

 private:
  Rotation rotation_;
};

std::unique_ptr<Method> make(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("rope", json);
  RotaryOptions rotary_options = {
      .dim = options.integer_or("dim", shape.head_dim, 0, shape.head_dim),
      .base = options.number("base", 1e-3, 1e30),
      .pairing = options.choice("pairing", {"half-split", "interleaved"}) == 0
                     ? Pairing::kHalfSplit
                     : Pairing::kInterleaved,
      .float32_speeds = options.flag("float32_speeds"),
  };
  return std::make_unique<Rope>(rotation(rotary(rotary_options)));
}

}  // namespace

MethodInfo rope_method() {
  return {.name = "rope",
          .summary = "Rotary position embedding (Su et al. 2021)",
          .defaults = R"({"dim": null, "base": 10000.0, "pairing": "half-split",
                          "float32_speeds": false})",
          .make = make};
}

}  // namespace sextant
