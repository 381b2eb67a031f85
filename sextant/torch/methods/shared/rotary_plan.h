// The rotation of queries and keys: a spectrum, stretched as the options say, either once for the
// whole sequence or again for each length. Shared by rope, xpos and the piecewise rotations.
//
// The options, besides those in rotary_options.h:
//
//   stretch      null, an object with Hugging Face's fields, or "yarn*8"; "pi" is "linear"
//                (sextant/rope_config/rope_scaling.h). If it does not give the original length,
//                the model's train_length is used.
//   dynamic      the length that a stretch by sequence length uses:
//                "query": each query's own position + 1; the keys are rotated again for it. Exact:
//                a sequence computed in a prefill and single steps gives the same result as in one
//                call. Costs one pass per query beyond the training length.
//                "length": the latest position so far, for all rows, as in Hugging Face. Decoding
//                then differs from prefill, since earlier rows were rotated by shorter lengths.
//                A number: this length, whatever the sequence.
//   query_scale  null, or the factor of queries by position: {"law": "logn", "length": null,
//                "strength": 0.1}, or the law's name alone (sextant/position/query_scale.h). Laws:
//                logn, logn-unclipped, ssmax (a trained scalar per head times ln(i + 1)), llama4,
//                ministral.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sextant/position/query_scale.h"
#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"

namespace sextant {

struct RopeScaling;

class RotaryPlan {
 public:
  // finish: applied last to a stretched spectrum (XPOS's growth); may be empty.
  RotaryPlan(const Options& options, const ModelShape& shape,
             std::function<Spectrum(Spectrum)> finish);

  // For ssmax its scale, one value per head; otherwise none.
  std::vector<ParameterSpec> parameters() const;

  // Sets the rotations and rotary positions of all sweeps, and scales queries.
  void apply(TensorOperands& operands, const Layout& layout, Parameters parameters) const;

  // Scales queries only.
  void scale(TensorOperands& operands, const Layout& layout, Parameters parameters) const;

  bool is_stretched() const;
  bool goes_by_sequence() const;  // dynamic, and not by a stated length
  // Whether the result depends on positions only through distances.
  bool relative() const { return !goes_by_sequence() && query_scale_.law == QueryLaw::kNone; }
  Spectrum spectrum(int64_t length) const;  // for a sequence of this length

 private:
  enum class By { kQuery, kLength, kStated };

  void read_query_scale(const Options& options);
  void read_dynamic(const Options& options);
  Spectrum finished(Spectrum spectrum) const;
  void place_frames(TensorOperands& operands, const Layout& layout) const;
  Rotation rotation_by(double factor) const;  // for a dynamic stretch

  int64_t heads_, train_length_;
  Spectrum plain_;
  bool float32_frequencies_, clockwise_;
  std::shared_ptr<const RopeScaling> scaling_;  // never null
  std::function<Spectrum(Spectrum)> finish_;
  By by_ = By::kQuery;
  int64_t stated_length_ = 0;
  QueryScale query_scale_;
  bool ssmax_ = false;
  int64_t axes_ = 1;
  // Rotations by factor, kept because every layer uses the same factors and each rotation takes 50
  // microseconds to compute.
  struct Known;
  std::shared_ptr<Known> known_;
  Rotation one_;  // for sequences up to the training length, or for the stated length
};

// The spectrum of a rope with these options (a JSON object), for use outside attention. Throws
// Error, prefixed with `what`, for options that need more than one spectrum.
Spectrum rope_spectrum(const std::string& what, const std::string& options, int64_t columns);

// The spectrum of methods that change distances themselves (rerope, dual-chunk), stretched as the
// option `stretch` says; they have neither `dynamic` nor `query_scale`. Throws Error for more than
// one axis, and for a stretch that depends on the sequence length or also scales scores, which is
// left to these methods.
Spectrum one_axis_spectrum(const Options& options, const ModelShape& shape);

// The defaults of the options of one_axis_spectrum(), as the beginning of a JSON object.
std::string one_axis_defaults();

// The defaults of `stretch`, `dynamic` and `query_scale`, as members of a JSON object.
std::string rotary_plan_defaults();

// The method defined by a rotary plan. rope and xpos differ only in their plans.

class RotaryMethod final : public Method {
 public:
  explicit RotaryMethod(RotaryPlan plan) : plan_(std::move(plan)) {}

  bool reads_rotary_positions() const override { return true; }
  bool relative() const override { return plan_.relative(); }
  std::vector<ParameterSpec> parameters() const override { return plan_.parameters(); }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    plan_.apply(operands, layout, parameters);
  }

 private:
  RotaryPlan plan_;
};

}  // namespace sextant
