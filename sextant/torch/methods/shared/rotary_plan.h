// How a method turns queries and keys: a spectrum, stretched as its options say, for all of the
// text or anew for each length of it. What rope, xpos and the piecewise rotations share.
//
// Besides those of rotary_options.h, the options are
//
//   stretch      null, an object in Hugging Face's words, or "yarn*8"
//   (sextant/rope_config/rope_scaling.h). Where it
//                does not say the length that the model was trained with, it is the model's
//                train_length.
//   dynamic      what a stretch that depends on the length of the text goes by:
//                "query": each query by its own position + 1, keys turned anew for it. Exact: a
//                text cut into prefill and single steps gives what it gives at once. Costs a pass
//                per query beyond the training length. "length": by the latest position so far, for
//                all rows, as Hugging Face does. Decoding is then not what reading at once is:
//                earlier rows were turned by shorter lengths. A number: by that length, whatever is
//                there.
//   query_scale  null, or by what queries are multiplied at their positions: {"law": "logn",
//   "length":
//                null, "strength": 0.1}, or the law alone (sextant/position/query_scale.h). Laws:
//                logn, logn-unclipped, ssmax (a trained number for each head times ln(i + 1)),
//                llama4, ministral.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sextant/position/query_scale.h"
#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"

namespace sextant {

struct RopeScaling;

class RotaryPlan {
 public:
  // finish: what is done to a stretched spectrum, at last (XPOS's growth); or empty.
  RotaryPlan(const Options& options, const ModelShape& shape,
             std::function<Spectrum(Spectrum)> finish);

  // Of ssmax: its scale, one number for each head. Else none.
  std::vector<ParameterSpec> parameters() const;

  // Sets the rotations and times of all sweeps, and scales queries.
  void apply(Operands& operands, const Layout& layout, Parameters parameters) const;

  // Scales queries only.
  void scale(Operands& operands, const Layout& layout, Parameters parameters) const;

  bool is_stretched() const;
  bool goes_by_sequence() const;  // dynamic, and not by a stated length
  // Whether only distances matter.
  bool relative() const { return !goes_by_sequence() && query_scale_.law == QueryLaw::kNone; }
  Spectrum spectrum(int64_t length) const;  // of a text of that length

 private:
  enum class By { kQuery, kLength, kStated };

  void read_query_scale(const Options& options);
  void read_dynamic(const Options& options);
  Spectrum finished(Spectrum spectrum) const;
  void place_frames(Operands& operands, const Layout& layout) const;
  Rotation rotation_by(double factor) const;  // of a dynamic stretch

  int64_t heads_, train_length_;
  Spectrum plain_;
  bool float32_speeds_, clockwise_;
  std::shared_ptr<const RopeScaling> scaling_;  // never null
  std::function<Spectrum(Spectrum)> finish_;
  By by_ = By::kQuery;
  int64_t stated_length_ = 0;
  QueryScale query_scale_;
  bool ssmax_ = false;
  int64_t axes_ = 1;
  // Of factors asked for before: every layer asks for the same ones, and each takes 50
  // microseconds.
  struct Known;
  std::shared_ptr<Known> known_;
  Rotation one_;  // of texts up to the training length, or of the stated length
};

// The spectrum of a rope with these options (a JSON object), outside attention. Throws Error, with
// `what` before it, for options that go beyond one spectrum.
Spectrum rope_spectrum(const std::string& what, const std::string& options, int64_t columns);

// For methods that bend distances themselves (rerope, dual-chunk): what they turn by, stretched as
// the option `stretch` says, the only one of the three that they have. Throws Error for more than
// one axis, and for a stretch that goes by the length of the text or scales scores besides: that is
// theirs to do.
Spectrum one_axis_spectrum(const Options& options, const ModelShape& shape);

// The defaults of its options, as the beginning of a JSON object.
std::string one_axis_defaults();

// The defaults of the three options, as members of a JSON object.
std::string rotary_plan_defaults();

}  // namespace sextant
