// Checks of a plan, which run once when it is prepared. They cost O(sweeps * rows).
#pragma once

#include <cstdint>
#include <string>

#include "sextant/attention/plan.h"

namespace sextant {

// All of these throw Error that names the field, its expected value and its value.
void check_plan(const Plan& plan, const PlanShape& shape);
void check_pages_below(const Plan& plan, const PlanShape& shape, int64_t pages);
// Checks that each distance between a query and a key that it sees has a diagonal.
void check_distances(const Plan& plan, const PlanShape& shape);

// Checks one of a side's rotations, for `rows` rows of `columns` columns. `name` is the side's
// name.
void check_rotation(const std::string& name, const SideRotation& side, const Rotation& rotation,
                    int64_t rows, int64_t columns);

// The highest page in the plan's page table; -1: there is none.
int64_t last_page(const Plan& plan, const PlanShape& shape);
// Whether check_distances() would accept the plan.
bool covers_distances(const Plan& plan, const PlanShape& shape);

}  // namespace sextant
