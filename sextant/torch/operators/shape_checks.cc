#include "sextant/torch/operators/shape_checks.h"

#include <sstream>

#include "sextant/base/error.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

std::ostream& operator<<(std::ostream& out, const Size& s) {
  if (s.rule == Size::kAny) return out << "*";
  return out << (s.rule == Size::kOneOr ? "1 or " : "") << s.size;
}

template <class Type, class Sizes>  // Type: a type, or a string for several types
std::string text(const Type& type, const Sizes& sizes) {
  std::ostringstream out;
  out << type << " [";
  const char* comma = "";
  for (const auto& size : sizes) {
    out << comma << size;
    comma = ", ";
  }
  out << "]";
  return out.str();
}

bool fits(const at::Tensor& x, const std::vector<Size>& sizes) {
  const auto got = x.sym_sizes();
  if (got.size() != sizes.size()) return false;
  for (size_t n = 0; n < got.size(); ++n)
    if (!sizes[n].accepts(got[n])) return false;
  return true;
}

}  // namespace

std::string type_and_sizes(const at::Tensor& x) { return text(x.scalar_type(), x.sym_sizes()); }

void refuse(const std::string& argument, const std::string& expected, const std::string& got) {
  fail("attend: " + argument + ": expected " + expected + ", but got " + got);
}

void check_on_cpu(const char* argument, const at::Tensor& x, bool meta) {
  if (x.defined() && !x.is_cpu() && !(meta && x.is_meta()))
    refuse(argument, "a tensor on cpu, where plans are made", x.device().str());
}

void check_tensor(const char* argument, const at::Tensor& x, at::ScalarType type,
                  const std::vector<Size>& sizes) {
  if (!x.defined() || (x.scalar_type() == type && fits(x, sizes))) return;
  refuse(argument, text(type, sizes), type_and_sizes(x));
}

void check_like_q(const char* argument, const at::Tensor& x, const at::Tensor& q,
                  const std::vector<Size>& sizes) {
  if (!x.defined()) return;
  if (x.device() != q.device()) refuse(argument, q.device().str() + ", as q", x.device().str());
  if (wide_type(x) == wide_type(q) && fits(x, sizes)) return;
  const char* types = wide_type(q) == at::kFloat ? "Float, BFloat16 or Half" : "Double";
  refuse(argument, text(types, sizes), type_and_sizes(x));
}

}  // namespace sextant
