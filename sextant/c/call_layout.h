// The layout of a call of the C API as a plan, in memory that is used again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sextant/attention/plan.h"
#include "sextant/c/handles.h"

namespace sextant::c {

// The distances of the tables of a call. Throws Error that names the member of sextant_attention or
// sextant_layout, as CallLayout::set() does.
Diagonals diagonals_of(const sextant_attention& attention);

class CallLayout {
 public:
  // Copies what the plan needs. Throws Error that names the member.
  void set(const sextant_attention& attention, const sextant_terms& terms);
  const Plan& plan() const { return plan_; }
  // Throws Error unless a call fits that of set(): what it says of the layout is the same or zero,
  // tables have maps where those had, and there are none where queries have no position.
  void check_call(const sextant_attention& attention, const sextant_terms& terms) const;

 private:
  void set_sweeps(const sextant_attention& attention, const sextant_layout& layout);
  void set_axes(const sextant_attention& attention, const sextant_terms& terms, int64_t keys);
  void set_pages(const sextant_attention& attention, const sextant_layout& layout);
  SideRotation side_of(const sextant_side& side, int64_t batch, int64_t rows,
                       std::vector<int64_t>& positions);
  const Rotation* keep(const sextant_rope* rope);

  std::vector<std::vector<KeyRange>> ranges_;               // of each sweep
  std::vector<std::vector<int64_t>> positions_;             // of both sides of each sweep
  std::vector<std::shared_ptr<const Rotation>> rotations_;  // of the plan
  std::vector<int64_t> pages_;
  std::vector<std::vector<int64_t>> axis_positions_;  // of both sides of each axis
  std::vector<std::vector<int32_t>> axis_rows_;       // both maps of each axis
  TableMaps maps_;
  sextant_attention said_ = {};     // that of set(), without arrays and addresses
  bool without_positions_ = false;  // there are more queries than keys and no first_query
  Plan plan_;
};

}  // namespace sextant::c
