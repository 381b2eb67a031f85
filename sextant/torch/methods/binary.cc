// binary: the bits of each position, added to the input.
//
// Bit j of the position, least significant first, as 0 and 1 or as -1 and 1
// (sextant/position/binary.h). The code fills the first columns of the input and leaves the rest
// unchanged, or, with `projected`, is multiplied by a trained matrix. It repeats after 2^bits
// positions, and near positions need not have near codes: 7 and 8 differ in four bits.
#include <nlohmann/json_fwd.hpp>

#include "sextant/position/binary.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/position_code.h"

namespace sextant {
namespace {

std::unique_ptr<Method> make_binary(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("binary", json);
  const int64_t bits = options.integer("bits", 1, 63);
  const BinaryLevels levels = options.choice("levels", {"0/1", "-1/1"}) == 0
                                  ? BinaryLevels::kZeroOne
                                  : BinaryLevels::kMinusOneOne;
  return std::make_unique<PositionCode>("binary", bits, shape.width, options.flag("projected"),
                                        [bits, levels](std::span<const int64_t> positions) {
                                          return binary_rows(bits, levels, positions);
                                        });
}

}  // namespace

MethodInfo binary_method() {
  return {.name = "binary",
          .summary = "The bits of the position, added to the input",
          .formula = "row(k)[j] = floor(k / 2^j) mod 2",
          .defaults = R"({"bits": 16, "levels": "0/1", "projected": false})",
          .make = make_binary,
          .tests = {.options = R"({"bits": 8})"}};
}

}  // namespace sextant
