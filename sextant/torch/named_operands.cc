#include "sextant/torch/named_operands.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

constexpr std::array<std::pair<const char*, TableOperand TensorOperands::*>, 5> kTables = {
    {{"weight", &TensorOperands::weight},
     {"bias", &TensorOperands::bias},
     {"on_query", &TensorOperands::on_query},
     {"on_key", &TensorOperands::on_key},
     {"on_value", &TensorOperands::on_value}}};

at::Tensor find(const NamedOperands& named, const std::string& name) {
  const auto found = named.find(name);
  return found == named.end() ? at::Tensor() : found->second;
}

// One rotation for all keys.
void rotate(TensorOperands& o, const Layout& layout, const at::Tensor& speeds,
            const at::Tensor& pairs) {
  if (!pairs.defined() || pairs.scalar_type() != at::kLong || pairs.dim() != 2 ||
      pairs.size(0) != speeds.numel() || pairs.size(1) != 3)
    fail("operands: pairs: expected int64 [pairs, 3], as there are speeds");
  Spectrum spectrum;
  const at::Tensor columns = pairs.contiguous(), radians = speeds.to(at::kDouble).contiguous();
  for (int64_t f = 0; f < radians.numel(); ++f) {
    const int64_t* pair = columns.data_ptr<int64_t>() + 3 * f;
    spectrum.pairs.push_back({.first = static_cast<int>(pair[0]),
                              .second = static_cast<int>(pair[1]),
                              .speed = Real(radians.data_ptr<double>()[f])});
  }
  for (SweepOperand& sweep : o.sweeps) {
    sweep.rotation = rotation(spectrum);
    sweep.query_rotary_positions = query_rotary_positions(layout, 1);
    sweep.key_rotary_positions = key_rotary_positions(layout, 1);
  }
}

class GivenOperands final : public Method {
 public:
  explicit GivenOperands(NamedOperands named) : named_(std::move(named)) {
    for (const auto& [name, value] : named_)
      if (!is_known(name))
        fail(
            "operands: expected weight, bias, on_query, on_key, on_value, each also with _rows, "
            "key_bias, sink, speeds or pairs, but got " +
            name);
  }

  bool reads_rotary_positions() const override { return named_.contains("speeds"); }

  void apply(TensorOperands& o, const Layout& layout, int64_t, Parameters) const override {
    set_operands(o, layout, named_);
  }

 private:
  static bool is_known(const std::string& name) {
    return std::ranges::any_of(kTables,
                               [&](const auto& table) {
                                 return name == table.first ||
                                        name == std::string(table.first) + "_rows";
                               }) ||
           name == "key_bias" || name == "sink" || name == "speeds" || name == "pairs";
  }

  NamedOperands named_;
};

}  // namespace

void set_operands(TensorOperands& o, const Layout& layout, const NamedOperands& named) {
  for (const auto& [name, table] : kTables)
    if (const at::Tensor rows = find(named, name); rows.defined())
      o.*table = {.rows = rows, .row_at = find(named, std::string(name) + "_rows")};
  if (const at::Tensor bias = find(named, "key_bias"); bias.defined()) o.key_bias = bias;
  if (const at::Tensor sink = find(named, "sink"); sink.defined()) o.sink = sink;
  if (const at::Tensor speeds = find(named, "speeds"); speeds.defined())
    rotate(o, layout, speeds, find(named, "pairs"));
}

std::unique_ptr<Method> method_of_operands(NamedOperands named) {
  return std::make_unique<GivenOperands>(std::move(named));
}

}  // namespace sextant
