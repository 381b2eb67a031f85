// Non-owning strided views [batch, heads, rows, columns]. Strides are counted in elements and may
// have any sign or order; a dimension that is shared (broadcast) has stride 0.
//
// View and AnyView are addresses and strides: their memory may lie on a device. HostView and
// HostAnyView also access elements. A view becomes one of these only explicitly, in code that knows
// that the memory is the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>

#include "sextant/base/error.h"
#include "sextant/base/half.h"

namespace sextant {

template <class T>
struct View {
  T* data = nullptr;
  int64_t batch = 0, heads = 0, rows = 0, columns = 0;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0, column_stride = 1;

  explicit operator bool() const { return data != nullptr; }
  // As T* converts to const T*.
  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator View<U>() const {
    return {data,         batch,       heads,      rows,         columns,
            batch_stride, head_stride, row_stride, column_stride};
  }
  T* at(int64_t b, int64_t h, int64_t row) const {
    return data + b * batch_stride + h * head_stride + row * row_stride;
  }
};

// The sizes of a view.
struct Shape {
  int64_t batch = 1, heads = 1, rows = 1, columns = 1;
};

// No memory has so many elements, and strides of such a view do not overflow.
inline constexpr int64_t kLargestView = int64_t{1} << 60;

// A view of elements that lie one after the other, the columns of a row first. The caller vouches
// for the size of the memory.
template <class T>
View<T> contiguous(T* data, const Shape& s) {
  return {data,
          s.batch,
          s.heads,
          s.rows,
          s.columns,
          s.heads * s.rows * s.columns,
          s.rows * s.columns,
          s.columns,
          1};
}

// The same for a vector, array or span. Throws Error unless it has as many elements as the view,
// and for sizes whose product is above kLargestView; a size of 0 counts as 1 there.
template <class Elements>
requires requires(Elements& elements) { std::data(elements), std::size(elements); }
auto contiguous(Elements& elements, const Shape& s) {
  const int64_t sizes[] = {s.batch, s.heads, s.rows, s.columns};
  int64_t count = 1, bound = 1;
  std::string product;
  for (const int64_t size : sizes) {
    product += (product.empty() ? "" : " x ") + std::to_string(size);
    if (size < 0) fail("view: shape: expected sizes of at least 0, but got " + product);
    if (size > kLargestView / bound)
      fail("view: shape: expected at most 2^60 elements, but got " + product);
    bound *= size > 0 ? size : 1;
    count *= size;
  }
  if (std::ssize(elements) != count)
    fail("view: data: expected " + std::to_string(count) + " elements (" + product + "), but got " +
         std::to_string(std::ssize(elements)));
  return contiguous(std::data(elements), s);
}

// A View of memory that the host can access.
template <class T>
struct HostView : View<T> {
  HostView() = default;
  explicit HostView(const View<T>& x) : View<T>(x) {}

  T& operator()(int64_t b, int64_t h, int64_t row, int64_t column) const {
    return this->at(b, h, row)[column * this->column_stride];
  }
};

// The type in which elements are stored.
enum class DType : uint8_t { kFloat32, kBfloat16, kFloat16, kFloat64 };

template <class Number>
inline constexpr DType kDTypeOf = std::is_same_v<Number, Bfloat16>  ? DType::kBfloat16
                                  : std::is_same_v<Number, Float16> ? DType::kFloat16
                                  : std::is_same_v<Number, double>  ? DType::kFloat64
                                                                    : DType::kFloat32;

// A view of elements of type T that are stored as T or as a 16-bit type (check_score.h refuses any
// other dtype). T is float or double, possibly const. Every View of a suitable type converts to an
// AnyView.
template <class T>
struct AnyView {
  using Number = std::remove_const_t<T>;
  template <class Stored>
  using Like = std::conditional_t<std::is_const_v<T>, const Stored, Stored>;
  template <class U>  // U is T, Bfloat16 or Float16, and const only if T is
  static constexpr bool kHolds = (std::is_const_v<T> || !std::is_const_v<U>)&&(
      std::is_same_v<std::remove_const_t<U>, Number> || kIsNarrow<std::remove_const_t<U>>);

  Like<void>* data = nullptr;
  int64_t batch = 0, heads = 0, rows = 0, columns = 0;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0, column_stride = 1;
  DType dtype = kDTypeOf<Number>;

  AnyView() = default;
  // NOLINTBEGIN(google-explicit-constructor): such a View is an AnyView
  template <class U>
  requires kHolds<U> AnyView(const View<U>& x)
      : data(x.data), dtype(kDTypeOf<std::remove_const_t<U>>) {
    take_sizes(x);
  }
  template <class U>
  requires(std::is_same_v<const U, T>) AnyView(const AnyView<U>& x) : data(x.data), dtype(x.dtype) {
    take_sizes(x);
  }
  // NOLINTEND(google-explicit-constructor)

  explicit operator bool() const { return data != nullptr; }
  int64_t element_size() const {
    const bool narrow = dtype == DType::kBfloat16 || dtype == DType::kFloat16;
    return static_cast<int64_t>(narrow ? sizeof(uint16_t) : sizeof(T));
  }
  Like<void>* at(int64_t b, int64_t h, int64_t row) const {
    const int64_t elements = b * batch_stride + h * head_stride + row * row_stride;
    return static_cast<Like<std::byte>*>(data) + elements * element_size();
  }

  // This view as a View of its storage type, which the caller knows from `dtype`.
  template <class Stored>
  View<Like<Stored>> as() const {
    return {static_cast<Like<Stored>*>(data),
            batch,
            heads,
            rows,
            columns,
            batch_stride,
            head_stride,
            row_stride,
            column_stride};
  }

 private:
  void take_sizes(const auto& x) {
    batch = x.batch, heads = x.heads, rows = x.rows, columns = x.columns;
    batch_stride = x.batch_stride, head_stride = x.head_stride;
    row_stride = x.row_stride, column_stride = x.column_stride;
  }
};

// An AnyView of memory that the host can access.
template <class T>
struct HostAnyView : AnyView<T> {
  using typename AnyView<T>::Number;

  HostAnyView() = default;
  // The host can access a HostView.
  template <class U>
  // NOLINTNEXTLINE(google-explicit-constructor)
  requires AnyView<T>::template kHolds<U> HostAnyView(const HostView<U>& x) : AnyView<T>(x) {}
  explicit HostAnyView(const AnyView<T>& x) : AnyView<T>(x) {}

  // Calls f with a HostView of the storage type.
  template <class F>
  decltype(auto) visit(F&& f) const {
    switch (this->dtype) {
      case DType::kBfloat16:
        return f(HostView(this->template as<Bfloat16>()));
      case DType::kFloat16:
        return f(HostView(this->template as<Float16>()));
      case DType::kFloat32:
      case DType::kFloat64:
        break;
    }
    return f(HostView(this->template as<Number>()));
  }

  Number operator()(int64_t b, int64_t h, int64_t row, int64_t column) const {
    return visit(
        [&](const auto& x) { return static_cast<Number>(to_float(x(b, h, row, column))); });
  }
  // Stores x, rounded once, to nearest.
  void set(int64_t b, int64_t h, int64_t row, int64_t column, double x) const
      requires(!std::is_const_v<T>) {
    visit([&](const auto& to) {
      using Stored = std::remove_pointer_t<decltype(to.data)>;
      if constexpr (kIsNarrow<Stored>)
        to(b, h, row, column) = narrowed<Stored>(rounded_to_odd(x));
      else
        to(b, h, row, column) = static_cast<Stored>(x);
    });
  }
};

}  // namespace sextant
