// Options give a spectrum at a length. Where the stretch grows with the length, a sequence is cut
// into frames of one factor, each with its own rotation.
#include "sextant/torch/methods/shared/rotary_plan.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "sextant/files/json_fields.h"
#include "sextant/rope_config/rope_scaling.h"
#include "sextant/torch/methods/shared/rotary_options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr int64_t kLongest = int64_t{1} << 40;

RopeScaling read_stretch(const Options& options, int64_t train_length, int64_t dim, double base) {
  json object = options.value("stretch");
  if (object.is_null()) return {};
  if (object.is_string()) object = scaling_of_words(object.get<std::string>(), "stretch");
  RopeScaling scaling = read_scaling(
      object, {.base = base, .pairs = dim / 2, .original_length = train_length}, "stretch");
  if (scaling.base && *scaling.base != base)
    options.refuse("base", "rope_theta of the stretch, " + std::to_string(*scaling.base));
  if (scaling.partial)
    options.refuse("stretch", "no partial_rotary_factor, which the option dim says");
  if (!scaling.sections.empty())
    options.refuse("stretch", "no mrope_section, which the options axes and sections say");
  return scaling;
}

// Stretches that count pairs from the fastest one are undefined unless the axes share one ladder of
// frequencies.
void check_ladder(const Options& options, const RopeScaling& scaling) {
  const bool stretched = scaling.is_dynamic() || std::get<Stretch>(scaling.stretch).index() != 0;
  if (stretched && breaks_ladder(options))
    options.refuse("axes", "one ladder of frequencies, as there is a stretch");
}

// The mean of ln n over n = 1 .. length.
double mean_log(int64_t length) {
  const auto n = static_cast<double>(std::max<int64_t>(length, 2));
  return std::lgamma(n + 1) / n;
}

// A run of consecutive queries with the same factor of the stretch.
struct Piece {
  Frame frame;
  double factor;
};

void write(const Frame& f, int64_t* to) {
  std::ranges::copy(
      std::initializer_list<int64_t>{f.batch, f.query_row, f.queries, f.query_position, f.key_row,
                                     f.keys, f.key_position},
      to);
}

// The rotary positions of the rows of a sequence.
struct Times {
  const at::Tensor &queries, &keys;  // [1 or batch, 1, rows]

  static int64_t at(const at::Tensor& rotary_positions, int64_t batch, int64_t row) {
    return rotary_positions.data_ptr<
        int64_t>()[(rotary_positions.size(0) == 1 ? 0 : batch) * rotary_positions.size(2) + row];
  }
  int64_t query(int64_t batch, int64_t row) const { return at(queries, batch, row); }
  int64_t latest(int64_t batch, const Frame& sequence) const {
    int64_t most = 0;
    for (int64_t n = 0; n < sequence.queries; ++n)
      most = std::max(most, at(queries, batch, sequence.query_row + n));
    for (int64_t n = 0; n < sequence.keys; ++n)
      most = std::max(most, at(keys, batch, sequence.key_row + n));
    return most;
  }
};

// Cuts a sequence wherever the factor changes. With the causal mask, a piece omits the keys after
// its last query.
void cut(const Frame& sequence, bool causal, const std::function<double(int64_t row)>& factor_of,
         std::vector<Piece>& pieces) {
  for (int64_t from = 0, to; from < sequence.queries; from = to) {
    const double factor = factor_of(sequence.query_row + from);
    for (to = from + 1; to < sequence.queries && factor_of(sequence.query_row + to) == factor;)
      ++to;
    Frame piece = sequence;
    piece.query_row += from;
    piece.query_position += from;
    piece.queries = to - from;
    const int64_t behind = sequence.query_position + to - sequence.key_position;
    if (causal) piece.keys = std::clamp<int64_t>(behind, 0, sequence.keys);
    pieces.push_back({piece, factor});
  }
}

}  // namespace

struct RotaryPlan::Known {
  std::mutex mutex;
  std::unordered_map<double, Rotation> by_factor;
};

RotaryPlan::RotaryPlan(const Options& options, const ModelShape& shape,
                       std::function<Spectrum(Spectrum)> finish)
    : heads_(shape.heads),
      train_length_(shape.train_length),
      plain_(rotary_ladder(options, shape.head_dim)),
      float32_frequencies_(options.flag("float32_frequencies")),
      clockwise_(options.choice("sense", {"counter-clockwise", "clockwise"}) == 1),
      finish_(std::move(finish)),
      axes_(axes_of(plain_)),
      known_(std::make_shared<Known>()) {
  scaling_ = std::make_shared<const RopeScaling>(
      read_stretch(options, shape.train_length, 2 * static_cast<int64_t>(plain_.pairs.size()),
                   options.number("base", 1e-3, 1e30)));
  check_ladder(options, *scaling_);
  query_scale_ = scaling_->query_scale;
  read_dynamic(options);
  read_query_scale(options);
  one_ = rotation(spectrum(1));  // throws for invalid options
}

void RotaryPlan::read_dynamic(const Options& options) {
  if (options.value("dynamic").is_number()) {
    by_ = By::kStated;
    stated_length_ = options.integer("dynamic", 1, kLongest);
  } else {
    by_ = options.choice("dynamic", {"query", "length"}) == 0 ? By::kQuery : By::kLength;
  }
  if (scaling_->is_dynamic() && axes_ > 1)
    options.refuse("axes", "\"one\", as the stretch goes by the length of the sequence");
}

void RotaryPlan::read_query_scale(const Options& options) {
  json given = options.value("query_scale");
  if (given.is_null()) return;
  if (query_scale_.law != QueryLaw::kNone)
    options.refuse("query_scale", "none, as the stretch has one (llama_4_scaling_beta)");
  if (given.is_string()) given = {{"law", given}};
  if (!given.is_object()) options.refuse("query_scale", "null, the name of a law, or an object");
  json complete = {{"law", nullptr}, {"length", nullptr}, {"strength", 0.1}};
  for (const auto& [name, value] : given.items()) {
    if (!complete.contains(name))
      options.refuse("query_scale", "no fields but law, length and strength");
    complete[name] = value;
  }
  const Options fields("query_scale", complete);
  constexpr QueryLaw kLaws[] = {QueryLaw::kLogn, QueryLaw::kLognUnclipped, QueryLaw::kLog,
                                QueryLaw::kLlama4, QueryLaw::kMinistral};
  query_scale_.law =
      kLaws[fields.choice("law", {"logn", "logn-unclipped", "ssmax", "llama4", "ministral"})];
  ssmax_ = query_scale_.law == QueryLaw::kLog;
  query_scale_.strength = fields.number("strength", 0, 1e6);
  const int64_t own = train_length_ == 1 ? 2 : train_length_;
  query_scale_.length = ssmax_ ? 0 : fields.integer_or("length", own, 2, kLongest);
}

std::vector<ParameterSpec> RotaryPlan::parameters() const {
  if (!ssmax_) return {};
  // This start multiplies scores by 1 on average over the training length; the choice is ours.
  const std::vector<double> start(static_cast<size_t>(heads_), 1 / mean_log(train_length_));
  return {{.name = "ssmax", .sizes = {heads_}, .initial = tensor_of(start, {heads_})}};
}

bool RotaryPlan::is_stretched() const {
  return scaling_->is_dynamic() || std::get<Stretch>(scaling_->stretch).index() != 0;
}

bool RotaryPlan::goes_by_sequence() const { return scaling_->is_dynamic() && by_ != By::kStated; }

Spectrum RotaryPlan::spectrum(int64_t length) const {
  const int64_t by = by_ == By::kStated ? stated_length_ : std::max<int64_t>(length, 1);
  return finished(stretched(plain_, stretch_of(*scaling_, by)));
}

Spectrum RotaryPlan::finished(Spectrum spectrum) const {
  if (float32_frequencies_) spectrum = with_float32_frequencies(std::move(spectrum));
  if (finish_) spectrum = finish_(std::move(spectrum));
  return clockwise_ ? clockwise(std::move(spectrum)) : spectrum;
}

void RotaryPlan::scale(TensorOperands& operands, const Layout& layout,
                       Parameters parameters) const {
  operands.scale *= scaling_->score_factor;
  if (query_scale_.law == QueryLaw::kNone) return;
  const at::Tensor positions = query_positions(layout);
  const std::vector<double> factors = query_factors(
      query_scale_, {positions.data_ptr<int64_t>(), static_cast<size_t>(positions.numel())});
  at::Tensor by =
      tensor_of(factors, {1, 1, positions.numel(), 1}, operands.q).to(operands.q.options());
  if (ssmax_) by = by * parameters[0].view({1, heads_, 1, 1});
  operands.q = operands.q * by;
}

void RotaryPlan::apply(TensorOperands& operands, const Layout& layout,
                       Parameters parameters) const {
  scale(operands, layout, parameters);
  for (SweepOperand& sweep : operands.sweeps) {
    sweep.rotation = one_;
    set_rotary_positions(sweep, layout, axes_);
  }
  if (goes_by_sequence()) place_frames(operands, layout);
}

Rotation RotaryPlan::rotation_by(double factor) const {
  constexpr size_t kMostKnown = 4096;  // 5 MB for heads of 64 channels
  const std::lock_guard lock(known_->mutex);
  const auto found = known_->by_factor.find(factor);
  if (found != known_->by_factor.end()) return found->second;
  if (known_->by_factor.size() >= kMostKnown) known_->by_factor.clear();
  const DynamicStretch& dynamic = std::get<DynamicStretch>(scaling_->stretch);
  return known_->by_factor[factor] =
             rotation(finished(stretched(plain_, stretch_by(dynamic, factor))));
}

// Each piece of a sequence with one factor becomes a frame with its own rotation.
void RotaryPlan::place_frames(TensorOperands& operands, const Layout& layout) const {
  const DynamicStretch& dynamic = std::get<DynamicStretch>(scaling_->stretch);
  const at::Tensor at_queries = query_rotary_positions(layout, 1).contiguous();
  const at::Tensor at_keys = key_rotary_positions(layout, 1).contiguous();
  const Times rotary_positions = {at_queries, at_keys};
  const bool alike = at_queries.size(0) == 1 && at_keys.size(0) == 1;
  const auto factor_at = [&](int64_t time) {
    return dynamic_factor(dynamic, std::max<int64_t>(time, 0) + 1);
  };
  std::vector<Piece> pieces;
  for (const Frame& sequence : sequences(layout))
    for (int64_t b = 0; b < (alike ? 1 : layout.batch); ++b) {
      Frame own = sequence;
      own.batch = alike ? kEveryBatch : b;
      const double of_all =
          by_ == By::kLength ? factor_at(rotary_positions.latest(b, sequence)) : 0;
      cut(
          own, layout.causal,
          [&](int64_t row) {
            return by_ == By::kLength ? of_all : factor_at(rotary_positions.query(b, row));
          },
          pieces);
    }
  operands.frames = at::empty({static_cast<int64_t>(pieces.size()), 7}, at::kLong);
  std::vector<Rotation> rotations;
  for (size_t n = 0; n < pieces.size(); ++n) {
    write(pieces[n].frame, operands.frames.data_ptr<int64_t>() + 7 * n);
    rotations.push_back(rotation_by(pieces[n].factor));
  }
  const auto same = [&](const Piece& piece) { return piece.factor == pieces[0].factor; };
  const bool one = std::ranges::all_of(pieces, same);
  for (SweepOperand& sweep : operands.sweeps) {
    if (!rotations.empty()) sweep.rotation = rotations[0];
    if (!one) sweep.of_frames = rotations;
  }
}

Spectrum rope_spectrum(const std::string& what, const std::string& options, int64_t columns) {
  const json given = checked_json_object(options, what + ": options");
  const json complete = complete_options("rope", given);
  const Options rope(what, complete);
  if (rope.flag("train")) rope.refuse("train", "false");
  if (!rope.value("query_scale").is_null()) rope.refuse("query_scale", "null");
  const RotaryPlan plan(rope, {.head_dim = columns}, {});
  if (plan.goes_by_sequence())
    rope.refuse("dynamic", "a length, as the stretch goes by the sequence");
  return plan.spectrum(1);
}

Spectrum one_axis_spectrum(const Options& options, const ModelShape& shape) {
  if (axes_choice(options) != 0)
    options.refuse("axes", "\"one\", as distances are bent by one position");
  Spectrum spectrum = rotary_ladder(options, shape.head_dim);
  const RopeScaling scaling =
      read_stretch(options, shape.train_length, 2 * static_cast<int64_t>(spectrum.pairs.size()),
                   options.number("base", 1e-3, 1e30));
  if (scaling.is_dynamic())
    options.refuse("stretch", "one that is the same for sequences of all lengths");
  if (scaling.score_factor != 1 || scaling.query_scale.law != QueryLaw::kNone)
    options.refuse("stretch", "one that changes frequencies and their gain only");
  spectrum = stretched(std::move(spectrum), std::get<Stretch>(scaling.stretch));
  if (options.flag("float32_frequencies")) spectrum = with_float32_frequencies(std::move(spectrum));
  const bool turned_back = options.choice("sense", {"counter-clockwise", "clockwise"}) == 1;
  return turned_back ? clockwise(std::move(spectrum)) : spectrum;
}

std::string one_axis_defaults() { return rotary_defaults("half-split") + R"(, "stretch": null)"; }

std::string rotary_plan_defaults() {
  return R"("stretch": null, "dynamic": "query", "query_scale": null)";
}

}  // namespace sextant
