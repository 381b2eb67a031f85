#include "sextant/torch/ring/shards.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/operators/kept.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Copies the rows of a rank to their positions, or from them.
struct Places {
  Group group;
  Shards shards = Shards::kZigzag;
  int64_t dim = 0;

  template <class Copy>
  void each(int64_t rows, Copy&& copy) const {
    int64_t row = 0;
    for (const Positions& at : positions_of_shard(shards, group.rank(), group.size(), rows)) {
      copy(row, at);
      row += at.count;
    }
  }

  at::Tensor gather(const at::Tensor& own) const {
    std::vector<int64_t> sizes = own.sizes().vec();
    sizes[static_cast<size_t>(dim)] *= group.size();
    at::Tensor all = at::zeros(sizes, own.options());
    each(own.size(dim), [&](int64_t row, const Positions& at) {
      all.narrow(dim, at.first, at.count).copy_(own.narrow(dim, row, at.count));
    });
    group.all_reduce({all});
    return all;
  }

  at::Tensor take(const at::Tensor& all) const {
    std::vector<int64_t> sizes = all.sizes().vec();
    sizes[static_cast<size_t>(dim)] /= group.size();
    at::Tensor own = at::zeros(sizes, all.options());
    each(own.size(dim), [&](int64_t row, const Positions& at) {
      own.narrow(dim, row, at.count).copy_(all.narrow(dim, at.first, at.count));
    });
    return own;
  }
};

class Gather : public torch::autograd::Function<Gather> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& own, const Places& places) {
    keep(context, places);
    return places.gather(own);
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_results) {
    const auto& places = kept<Places>(context);
    const at::Tensor sum = d_results[0].clone(at::MemoryFormat::Contiguous);
    places.group.all_reduce({sum});
    return {places.take(sum), {}};
  }
};

}  // namespace

Shards shards_of(std::string_view name) {
  if (name == "zigzag") return Shards::kZigzag;
  if (name == "contiguous") return Shards::kContiguous;
  fail("shards: expected \"zigzag\" or \"contiguous\", but got \"" + std::string(name) + "\"");
}

std::vector<Positions> positions_of_shard(Shards shards, int64_t rank, int64_t size, int64_t rows) {
  if (size == 1) return {{0, rows}};
  if (shards == Shards::kContiguous) return {{rank * rows, rows}};
  if (rows % 2 != 0)
    fail(
        "shards: expected an even number of rows of each rank in zigzag order, two chunks, but "
        "got " +
        std::to_string(rows));
  const int64_t chunk = rows / 2;
  return {{rank * chunk, chunk}, {(2 * size - 1 - rank) * chunk, chunk}};
}

at::Tensor unsharded(const at::Tensor& x, int64_t dim, Shards shards, const Group& group) {
  if (group.size() == 1) return x;
  return Gather::apply(x, Places{.group = group, .shards = shards, .dim = dim});
}

}  // namespace sextant
