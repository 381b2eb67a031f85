#include "sextant/torch/bindings/method_cache.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/torch/named_operands.h"

namespace sextant {
namespace {

using nlohmann::json;

ModelShape model_shape(const std::vector<int64_t>& sizes) {
  if (sizes.size() != 6)
    fail(
        "method: shape: expected [layers, heads, key_heads, head_dim, width, train_length], but "
        "got " +
        std::to_string(sizes.size()) + " numbers");
  return {.layers = sizes[0],
          .heads = sizes[1],
          .key_heads = sizes[2],
          .head_dim = sizes[3],
          .width = sizes[4],
          .train_length = sizes[5]};
}

// All layers have the same layout, and plans of long sequences need much memory, so few are kept.
constexpr size_t kPlansOfMethod = 2;

class RecentMethods {
 public:
  using Key = std::tuple<std::string, std::vector<int64_t>, std::string>;

  CachedMethod get(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto found = std::ranges::find(entries_, key, &Entry::first);
    if (found == entries_.end()) {
      const auto& [name, sizes, options] = key;
      entries_.emplace_front(
          key, CachedMethod{make_method(name, model_shape(sizes),
                                        checked_json_object(options, "method: options")),
                            std::make_shared<PlanCache>(kPlansOfMethod)});
      if (entries_.size() > kMost) entries_.pop_back();
    } else {
      entries_.splice(entries_.begin(), entries_, found);
    }
    return entries_.front().second;
  }

 private:
  static constexpr size_t kMost = 8;
  using Entry = std::pair<Key, CachedMethod>;

  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used one first
};

}  // namespace

CachedMethod cached_method(const std::string& name, const std::vector<int64_t>& shape,
                           const std::string& options) {
  // Never destroyed: at the end of a program, CUDA may be gone before the memory of plans.
  static auto* const recent = new RecentMethods;
  return recent->get({name, shape, options});
}

CachedMethod own_method(const std::string& options, const std::vector<at::Tensor>& operands) {
  static auto* const plans =
      new std::shared_ptr<PlanCache>(std::make_shared<PlanCache>(kPlansOfMethod));
  const json read = checked_json_object(options, "method own: options");
  const auto names = read.find("names");
  if (names == read.end() || !names->is_array() || names->size() != operands.size())
    fail("method own: names: expected a list of " + std::to_string(operands.size()) +
         " names, one for each operand, but got " + options);
  std::map<std::string, at::Tensor> named;
  for (size_t n = 0; n < operands.size(); ++n)
    named.emplace(names->at(n).is_string() ? names->at(n).get<std::string>() : "", operands[n]);
  return {method_of_operands(std::move(named)), *plans};
}

}  // namespace sextant
