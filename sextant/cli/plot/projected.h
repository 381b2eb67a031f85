// Figures of vectors that are added to the input: the products p_i W_q W_k^T p_j in which they meet
// in attention, without W and with random ones, and how far distance alone explains them.
#pragma once

#include <span>
#include <vector>

#include "sextant/cli/plot/figures.h"

namespace sextant::cli {

// Adds --heads, --head-dim and --seed.
std::vector<PlotOption> with_projections(std::vector<PlotOption> options);

// "product": p_i . p_j. "random-w": p_i W_q W_k^T p_j of the first head, W_q and W_k [width,
// head_dim] of independent normal numbers of variance 1 / width, as a model begins its training.
// "explained-distance": both by distance in two panels, in standard deviations of their matrix,
// with a band from the minimum to the maximum, and the means of the other heads; the names of the
// lines have the share of keys before the query. "explained": the share of the variance that
// distance explains, of keys before the query and of all.
std::vector<Figure> projected_figures(const PlotValues& values, const PlotSubject& subject,
                                      std::span<const double> rows);

// All figures of vectors that are added to the input: vector_figures() and these.
std::vector<Figure> added_figures(const PlotValues& values, const PlotSubject& subject,
                                  std::span<const double> rows);

}  // namespace sextant::cli
