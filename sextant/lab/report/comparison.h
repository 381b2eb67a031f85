// Differences between methods, and the table that sets each beside others: what it costs at L, how
// its loss changes at each length, how far it is behind the best, and whether it finds far pairs.
#pragma once

#include <optional>
#include <string>

#include "sextant/lab/report/findings.h"
#include "sextant/lab/report/result_table.h"

namespace sextant::lab {

// The methods that were trained, if `base` is empty, or those that are tested with the weights of
// this one, which follows as the last; by loss at the longest length, with those that have not
// learned the text last.
ResultTable comparison(const Findings& findings, const std::string& base);

// A measure of a method minus that of the other; nullopt if they have no seed in common or only
// means were kept.
std::optional<MeanInterval> behind(const MethodResult& method, const MethodResult& other,
                                   const Settings& settings, Measure measure = Measure::kLongest);

// Accuracies of the small task in sequences of a length: pairs at the beginning, and near ones; or
// marks of all distances. The columns of tables.h.
ValueColumn far_column(const Settings& settings, int64_t length);
ValueColumn near_column(const Settings& settings, int64_t length);
ValueColumn direction_column(int64_t length);

}  // namespace sextant::lab
