// The operands of the score equation (score.h), once, for all code that treats them alike.
//
// Kernels and the reference name operands, because each has its own place in the equation. All
// other code passes them on: it checks and converts them, takes the part of some queries or keys,
// sums their gradients, or makes them arguments of an operator. Such code visits this list and asks
// for tags. An entry without all of its tags, and a member of Operands, ScoreGrad or TensorOperands
// without an entry, do not compile. Lists of gradients have the order of this list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "sextant/attention/score.h"

namespace sextant {

// An axis of an operand that is a tensor. A View has the axes batch, heads, rows and columns, of
// size 1 where the tensor has none.
enum class Axis : uint8_t {
  kBatch,
  kHeads,
  kKeyHeads,  // of k and v, which may be in pages
  kQueries,
  kKeys,
  kColumns,  // of q and k
  kValueColumns,
  kRows,       // of a table, to which Plan::row_at maps diagonals; its own number, as the following
  kAxisRows,   // of a table, to which the axes of a plan map their distances
  kDiagonals,  // likewise, without a map
  kFirstColumns,
  kNone
};
// The sizes of kBatch to kValueColumns.
template <class Size>
using AxisSizes = std::array<Size, static_cast<size_t>(Axis::kRows)>;

// The axes that may have size 1, for all heads or batch entries together.
enum class Shared : uint8_t { kNothing, kHeads, kBatchAndHeads, kEveryAxis };
enum class Elements : uint8_t {
  kAsStored,  // 16 bits or the type of the computation, which kernels read as they are
  kComputed,  // likewise, converted to the type of the computation before the call
  kFloat64,
  kBool
};
enum class Gradient : bool { kNone, kWanted };
enum class Presence : bool { kOptional, kAlways };

// An entry of the list. of(s) is its member in any struct of operands: Operands, ScoreGrad,
// HostScore, HostGrad, TensorOperands, and for a table by diagonal RowMaps.
template <class Of, Presence kPresence, Gradient kGradient, Elements kElements, Shared kShared,
          Axis... kAxes>
struct Operand {
  const char* name;
  Of of;

  static constexpr Presence presence = kPresence;
  static constexpr Elements elements = kElements;
  static constexpr bool has_gradient() { return kGradient == Gradient::kWanted; }
  static constexpr Axis axis(size_t dim) {
    constexpr std::array<Axis, 5> axes = {kAxes..., Axis::kNone};
    return dim < sizeof...(kAxes) ? axes[dim] : Axis::kNone;
  }
  // The dimension of the tensor with an axis, or -1.
  static constexpr int dim(Axis of_tensor) {
    for (size_t n = 0; n < sizeof...(kAxes); ++n)
      if (axis(n) == of_tensor) return static_cast<int>(n);
    return -1;
  }
  static constexpr bool has(Axis axis) { return dim(axis) >= 0; }
  static constexpr bool may_share(Axis axis) {
    return kShared == Shared::kEveryAxis || (kShared != Shared::kNothing && axis == Axis::kHeads) ||
           (kShared == Shared::kBatchAndHeads && axis == Axis::kBatch);
  }
};

template <Presence kPresence, Gradient kGradient, Elements kElements, Shared kShared, Axis... kAxes,
          class Of>
constexpr auto operand(const char* name, Of of) requires(sizeof...(kAxes) > 0) {
  return Operand<Of, kPresence, kGradient, kElements, kShared, kAxes...>{name, of};
}

namespace operand_list {

using enum Axis;
using enum Elements;
constexpr auto kAlways = Presence::kAlways;
constexpr auto kOptional = Presence::kOptional;
constexpr auto kWanted = Gradient::kWanted;
constexpr auto kExactly = Shared::kNothing, kByHead = Shared::kHeads;

inline constexpr std::tuple kAll = {
    operand<kAlways, kWanted, kAsStored, kExactly, kBatch, kHeads, kQueries, kColumns>(
        "q", [](auto& s) -> auto& { return s.q; }),
    operand<kAlways, kWanted, kAsStored, kExactly, kBatch, kKeyHeads, kKeys, kColumns>(
        "k", [](auto& s) -> auto& { return s.k; }),
    operand<kAlways, kWanted, kAsStored, kExactly, kBatch, kKeyHeads, kKeys, kValueColumns>(
        "v", [](auto& s) -> auto& { return s.v; }),
    operand<kOptional, kWanted, kAsStored, kExactly, kBatch, kHeads, kQueries, kColumns>(
        "q_imag", [](auto& s) -> auto& { return s.q_imag; }),
    operand<kOptional, kWanted, kComputed, kByHead, kHeads, kRows>(
        "weight", [](auto& s) -> auto& { return s.weight; }),
    operand<kOptional, kWanted, kComputed, kByHead, kHeads, kRows>(
        "bias", [](auto& s) -> auto& { return s.bias; }),
    operand<kOptional, kWanted, kComputed, kByHead, kHeads, kRows, kFirstColumns>(
        "on_query", [](auto& s) -> auto& { return s.on_query; }),
    operand<kOptional, kWanted, kComputed, kByHead, kHeads, kRows, kFirstColumns>(
        "on_key", [](auto& s) -> auto& { return s.on_key; }),
    operand<kOptional, kWanted, kComputed, kByHead, kHeads, kRows, kValueColumns>(
        "on_value", [](auto& s) -> auto& { return s.on_value; }),
    operand<kOptional, kWanted, kComputed, kByHead, kHeads, kAxisRows>(
        "axis_bias", [](auto& s) -> auto& { return s.axis_bias; }),
    operand<kOptional, kWanted, kComputed, kByHead, kHeads, kAxisRows, kFirstColumns>(
        "axis_on_query", [](auto& s) -> auto& { return s.axis_on_query; }),
    operand<kOptional, kWanted, kComputed, kExactly, kBatch, kHeads, kQueries, kFirstColumns>(
        "table_query", [](auto& s) -> auto& { return s.table_query; }),
    operand<kOptional, kWanted, kComputed, kExactly, kHeads>(
        "sink", [](auto& s) -> auto& { return s.sink; }),
    operand<kOptional, kWanted, kComputed, kExactly, kBatch, kHeads, kQueries>(
        "query_sink", [](auto& s) -> auto& { return s.query_sink; }),
    operand<kOptional, kWanted, kComputed, Shared::kBatchAndHeads, kBatch, kHeads, kQueries,
            kDiagonals>(
        "query_bias", [](auto& s) -> auto& { return s.query_bias; }),
    operand<kOptional, kWanted, kFloat64, Shared::kBatchAndHeads, kBatch, kHeads, kKeys>(
        "key_bias", [](auto& s) -> auto& { return s.key_bias; }),
    operand<kOptional, Gradient::kNone, kBool, Shared::kEveryAxis, kBatch, kHeads, kQueries, kKeys>(
        "mask", [](auto& s) -> auto& { return s.mask; }),
};

}  // namespace operand_list

// Calls f(entry) for all operands.
template <class F>
constexpr void each_operand(F&& f) {
  std::apply([&](const auto&... entry) { (f(entry), ...); }, operand_list::kAll);
}

// The same for those with gradients.
template <class F>
constexpr void each_differentiable(F&& f) {
  each_operand([&](auto entry) {
    if constexpr (entry.has_gradient()) f(entry);
  });
}

// The same for all tables by the distance in frames.
template <class F>
constexpr void each_table(F&& f) {
  each_operand([&](auto entry) {
    if constexpr (entry.has(Axis::kRows)) f(entry);
  });
}

// The same for all tables, those of axes too.
template <class F>
constexpr void each_any_table(F&& f) {
  each_operand([&](auto entry) {
    if constexpr (entry.has(Axis::kRows) || entry.has(Axis::kAxisRows)) f(entry);
  });
}

inline constexpr size_t kDifferentiable = std::apply(
    [](const auto&... entry) { return (size_t{entry.has_gradient()} + ...); }, operand_list::kAll);

// Whether a struct, without padding, consists of all operands, or of all with gradients, and of
// `more` bytes.
template <class Struct, bool kGradients = false>
constexpr bool lists_operands(size_t more = 0) {
  each_operand([&](auto entry) {
    if constexpr (!kGradients || entry.has_gradient())
      more += sizeof(entry.of(std::declval<Struct&>()));
  });
  return sizeof(Struct) == more;
}

static_assert(lists_operands<Operands<float>>(2 * sizeof(Int8Pages<float>) + sizeof(Dropout) +
                                              2 * sizeof(double)),  // scale and softcap
              "score.h: Operands has a member without an entry in operand_list.h");
static_assert(lists_operands<ScoreGrad<float>, true>(),
              "score.h: ScoreGrad has other members than the operands with gradients");

}  // namespace sextant
