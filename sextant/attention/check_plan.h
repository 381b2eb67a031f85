// Checks of a plan, which run once when it is prepared. They cost O(sweeps * rows).
#pragma once

#include <cstdint>
#include <string>

#include "sextant/attention/plan.h"

namespace sextant {

// All of these throw Error that names the field, its expected value and its value.
void check_plan(const Plan& plan, const PlanShape& shape);
// Checks that the page table has pages of `range` only.
void check_pages_in(const Plan& plan, const PlanShape& shape, const PageRange& range);
// Checks that each distance between a query and a key that it sees has a diagonal.
void check_distances(const Plan& plan, const PlanShape& shape);

// The name of a side of a sweep, which becomes a string only if there is an error.
struct SideName {
  int64_t sweep = -1;  // -1: the side belongs to no sweep
  const char* member = "";

  std::string text() const {
    return (sweep < 0 ? "" : "sweeps[" + std::to_string(sweep) + "]") + member;
  }
};

// Checks one of a side's rotations, for rows of `columns` columns.
void check_rotation(const SideName& name, const SideRotation& side, const Rotation& rotation,
                    int64_t columns);

// The pages in the plan's page table.
PageRange pages_of(const Plan& plan, const PlanShape& shape);
// Whether check_distances() would accept the plan.
bool covers_distances(const Plan& plan, const PlanShape& shape);

}  // namespace sextant
