#include "sextant/lab/plan/device_name.h"

#include <algorithm>
#include <string_view>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

constexpr std::string_view kCuda = "cuda", kNumbered = "cuda:";
constexpr size_t kDigits = 2;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void check_device_name(const std::string& name) {
  if (name == kCpu || name == kCuda) return;
  if (!name.starts_with(kNumbered)) fail("device: expected cpu or cuda, but got " + name);
  if (!is_number(std::string_view(name).substr(kNumbered.size())))
    fail("device: expected the number of a GPU after cuda:, but got " + name);
}

int device_index(const std::string& name) {
  return name.starts_with(kNumbered) ? std::stoi(name.substr(kNumbered.size())) : 0;
}

}  // namespace sextant::lab
