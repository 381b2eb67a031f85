#include "sextant/torch/named_operands.h"

#include <string_view>
#include <utility>

#include "sextant/base/error.h"

namespace sextant {
namespace {

TableOperand& table(TensorOperands& o, std::string_view name) {
  if (name == "weight") return o.weight;
  if (name == "bias") return o.bias;
  if (name == "on_query") return o.on_query;
  if (name == "on_key") return o.on_key;
  if (name == "on_value") return o.on_value;
  fail(
      "operands: expected weight, bias, on_query, on_key, on_value, each also with _rows, "
      "key_bias, sink, frequencies or pairs, but got " +
      std::string(name));
}

// One rotation for all keys.
void rotate(TensorOperands& o, const Layout& layout, const at::Tensor& frequencies,
            const at::Tensor& pairs) {
  Spectrum spectrum;
  const at::Tensor columns = pairs.contiguous(), radians = frequencies.to(at::kDouble).contiguous();
  for (int64_t f = 0; f < radians.numel(); ++f) {
    const int64_t* pair = columns.data_ptr<int64_t>() + 3 * f;
    spectrum.pairs.push_back({.first = static_cast<int>(pair[0]),
                              .second = static_cast<int>(pair[1]),
                              .frequency = Real(radians.data_ptr<double>()[f])});
  }
  for (SweepOperand& sweep : o.sweeps) {
    sweep.rotation = rotation(spectrum);
    set_rotary_positions(sweep, layout, 1);
  }
}

class GivenOperands final : public Method {
 public:
  explicit GivenOperands(NamedOperands named) : named_(std::move(named)) {}
  bool reads_rotary_positions() const override { return named_.contains("frequencies"); }
  void apply(TensorOperands& o, const Layout& layout, int64_t, Parameters) const override {
    set_operands(o, layout, named_);
  }

 private:
  NamedOperands named_;
};

}  // namespace

void set_operands(TensorOperands& o, const Layout& layout, const NamedOperands& named) {
  constexpr std::string_view kRows = "_rows";
  for (const auto& [name, x] : named) {
    if (name == "key_bias")
      o.key_bias = x;
    else if (name == "sink")
      o.sink = x;
    else if (name == "frequencies")
      rotate(o, layout, x, named.at("pairs"));
    else if (name.ends_with(kRows))
      table(o, name.substr(0, name.size() - kRows.size())).row_at = x;
    else if (name != "pairs")
      table(o, name).rows = x;
  }
}

std::unique_ptr<Method> method_of_operands(NamedOperands named) {
  return std::make_unique<GivenOperands>(std::move(named));
}

}  // namespace sextant
