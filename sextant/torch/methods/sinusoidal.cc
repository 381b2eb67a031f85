// sinusoidal: sines and cosines of each position are added to the input.
//
// Vaswani et al. 2017 (arXiv 1706.03762), section 3.5:
//
//   p[t, 2i] = sin(t w_i),  p[t, 2i + 1] = cos(t w_i),  w_i = base^(-2i / width)
//
// Any position has a row, but a model knows only the rows of its training.
// sextant/position/sinusoid.h has the layouts of other codes; a checkpoint needs the layout it was
// trained with.
//
// Layout "fairseq" has tensor2tensor's columns, and positions count from padding_idx + 1: the first
// token has the row of position 2 in its dictionaries, whose padding is token 1. Padding gets a row
// of zeros and is not counted. Option padding_idx identifies padding among the token ids, which are
// then required; without it no token is padding. If a sequence is computed in several calls,
// padding of earlier calls is counted, as in fairseq's own decoding.
//
// The first token has position `first`: a model trained from 0 is read at other positions so.
//
// The input is first multiplied by token_scale: the paper's sqrt(width), for models that have not
// done so.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/position/sinusoid.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Sinusoidal final : public Method {
 public:
  // first: the row of a sequence's first token.
  Sinusoidal(const SinusoidOptions& options, int64_t first, double token_scale)
      : sinusoid_(options),
        padding_(options.padding_position),
        first_(first),
        token_scale_(token_scale) {}

  bool relative() const override { return false; }
  int64_t added_channels() const override { return sinusoid_.width(); }
  bool reads_token_ids() const override { return padding_.has_value(); }
  at::Tensor embed(const at::Tensor& x, const Layout& layout, Parameters) const override {
    if (padding_ && !layout.token_ids.defined())
      fail(
          "sinusoidal: padding_idx: expected null, as no words are given to tell padding by, but "
          "got " +
          std::to_string(*padding_));
    const at::Tensor positions =
        padding_ ? counted_positions(layout) : query_positions(layout) + first_;
    const auto size = static_cast<size_t>(positions.numel());
    const auto rows = sinusoid_.rows(std::span(positions.data_ptr<int64_t>(), size));
    std::vector<int64_t> sizes = positions.sizes().vec();
    sizes.push_back(sinusoid_.width());
    return x * token_scale_ + tensor_of(rows, sizes, x).to(x.options());
  }

 private:
  // int64 [batch, queries]
  at::Tensor counted_positions(const Layout& layout) const {
    const at::Tensor token_ids = query_token_ids(layout).contiguous();
    at::Tensor positions = at::empty_like(token_ids);
    for (int64_t entry = 0; entry < layout.batch; ++entry)
      for (const Frame& sequence : sequences(layout)) {
        const int64_t start = entry * layout.queries + sequence.query_row;
        const std::span tokens(token_ids.data_ptr<int64_t>() + start,
                               static_cast<size_t>(sequence.queries));
        int64_t* to = positions.data_ptr<int64_t>() + start;
        for (const int64_t position : fairseq_positions(tokens, *padding_))
          *to++ = position == *padding_ ? position : position + sequence.query_position;
      }
    return positions;
  }

  Sinusoid sinusoid_;
  std::optional<int64_t> padding_;
  int64_t first_;
  double token_scale_;
};

std::unique_ptr<Method> make_sinusoidal(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("sinusoidal", json);
  const TextSinusoid text = text_sinusoid(options.string("layout"), "sinusoidal: layout");
  SinusoidOptions sinusoid = {
      .width = shape.width,
      .layout = text.layout,
      .max_timescale = options.number("base", 1e-3, 1e30),
  };
  if (!options.value("padding_idx").is_null()) {
    if (!text.fairseq) options.refuse("padding_idx", "null, as layout is not \"fairseq\"");
    sinusoid.padding_position = options.integer("padding_idx", 0, int64_t{1} << 31);
  }
  int64_t first = options.integer("first", 0, int64_t{1} << 31);
  if (first != 0 && text.fairseq) options.refuse("first", "0, as layout \"fairseq\" counts tokens");
  if (!sinusoid.padding_position) first += text.first_position();
  return std::make_unique<Sinusoidal>(sinusoid, first, options.number("token_scale", -1e9, 1e9));
}

}  // namespace

MethodInfo sinusoidal_method() {
  return {.name = "sinusoidal",
          .summary = "Sines and cosines added to the input (Vaswani et al. 2017)",
          .formula =
              "x_t = token_scale * x_t + p[t]; p[t][2i] = sin(t w_i); p[t][2i+1] = cos(t w_i); w_i "
              "= base^(-2i / width)",
          .defaults = R"({"layout": "interleaved", "base": 10000.0, "padding_idx": null,
                          "token_scale": 1.0, "first": 0})",
          .make = make_sinusoidal};
}

}  // namespace sextant
