#include "sextant/torch/operators/device_constants.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/device_call.h"

namespace sextant {
namespace {

struct Copy {
  at::Tensor original;     // of a table; undefined: see `values`
  at::Tensor values = {};  // of a constant, on the CPU
  size_t hash = 0;
  at::Tensor copy = {};
  void* stream = nullptr;  // on which the copy was made: other streams would have to wait for it
};

std::string_view bytes_of(const at::Tensor& x) {
  return {static_cast<const char*>(x.data_ptr()), x.nbytes()};
}

size_t hash_of(const at::Tensor& x) { return std::hash<std::string_view>()(bytes_of(x)); }

bool same_values(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && bytes_of(a) == bytes_of(b);
}

// A copy outlives the call, so it must be a plain tensor even in inference mode, or in a Python
// mode that counts or fakes operators.
template <class F>
auto as_plain_tensor(F&& make) {
  const c10::InferenceMode inference(false);
  const c10::impl::ExcludeDispatchKeyGuard python(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  return make();
}

class Copies {
 public:
  at::Tensor of_constant(const at::Tensor& x, const DeviceCall& call) {
    const size_t hash = hash_of(x);
    return get(
        call,
        [&](const Copy& one) {
          return one.values.defined() && one.hash == hash && same_values(one.values, x);
        },
        [&] { return Copy{.values = x.clone(), .hash = hash, .copy = x.to(call.device())}; });
  }
  at::Tensor of_table(const at::Tensor& x, const DeviceCall& call) {
    return get(
        call, [&](const Copy& one) { return one.original.is_same(x); },
        [&] { return Copy{.original = x, .copy = x.to(call.device())}; });
  }

 private:
  static constexpr size_t kMost = 128, kMostBytes = size_t{1} << 28;

  template <class Matches, class Make>
  at::Tensor get(const DeviceCall& call, Matches&& matches, Make&& make) {
    const std::lock_guard lock(mutex_);
    auto at = std::ranges::find_if(copies_, [&](const std::shared_ptr<const Copy>& one) {
      return one->copy.device() == call.device() && one->stream == call.stream() && matches(*one);
    });
    if (at == copies_.end()) {
      add(call, make);
      at = copies_.begin();
    }
    copies_.splice(copies_.begin(), copies_, at);
    if (call.is_captured()) keep_for_graphs(*at);
    return (*at)->copy;
  }

  template <class Make>
  void add(const DeviceCall& call, Make&& make) {
    if (call.is_captured())
      fail(
          "cuda: expected a call with the same method and layout on this stream before the capture "
          "of a CUDA graph, as constants of the method are copied to the device");
    Copy made = as_plain_tensor(make);
    made.stream = call.stream();
    bytes_ += made.copy.nbytes();
    copies_.push_front(std::make_shared<const Copy>(std::move(made)));
    while (copies_.size() > 1 && (copies_.size() > kMost || bytes_ > kMostBytes)) {
      bytes_ -= copies_.back()->copy.nbytes();
      copies_.pop_back();
    }
  }

  std::mutex mutex_;
  std::list<std::shared_ptr<const Copy>> copies_;  // the most recently used one first
  size_t bytes_ = 0;
};

// Never destroyed: at the end of a program, CUDA may be gone before this memory.
Copies& copies() {
  static auto* const all = new Copies;
  return *all;
}

}  // namespace

at::Tensor on_device_of(const at::Tensor& like, const at::Tensor& x) {
  if (like.device() == x.device()) return x;
  if (like.is_meta()) return x.to(like.device());
  return copies().of_constant(x.contiguous(), DeviceCall(like));
}

at::Tensor table_on_device_of(const at::Tensor& like, const at::Tensor& table) {
  if (like.device() == table.device()) return table;
  if (like.is_meta()) return table.to(like.device());
  return copies().of_table(table, DeviceCall(like));
}

}  // namespace sextant
