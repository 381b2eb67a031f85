// Figures that several encodings share, drawn from their vectors or from values by distance.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/cli/plot/plotted.h"

namespace sextant::cli {

// The positions 0, step, 2 step, ... below length. Every method has the options --length and
// --step.
struct Positions {
  int64_t step = 1;
  std::vector<int64_t> list = {};
};
std::vector<PlotOption> with_positions(std::vector<PlotOption> options, int64_t length = 128);
// Throws Error if there are too many positions for a matrix.
Positions positions_of(const PlotValues& values);

// Title, settings and positions that all figures of an encoding share.
struct PlotSubject {
  std::string title;     // "Sinusoidal positions"
  std::string settings;  // "width 64, base 10000"
  Positions positions = {};
};

// Figures of an encoding with one vector per position, `rows` [positions, width]: the vectors;
// `similarity` [positions, positions] of each two, symmetric; and its mean over all pairs by
// distance, with a band from the minimum to the maximum. `label` is that of the similarity.
std::vector<Figure> vector_figures(const PlotSubject& subject, std::span<const double> rows,
                                   std::vector<double> similarity, const chart::Axis& label);
// The matrix [count, count] of cosines of the angles between rows; NaN where a vector is zero.
std::vector<double> cosines(std::span<const double> rows, size_t count);

// Figures of an encoding that is known by its scores alone, [heads, positions, positions] with NaN
// for masked keys: the scores of the first head; and the mean score of each head by distance, with
// a band from the minimum to the maximum if there is only one head.
std::vector<Figure> score_figures(const PlotSubject& subject, std::span<const double> scores);

// A map of queries and keys, without values yet.
chart::HeatMap square_map(const PlotSubject& subject, const std::string& title);
// The mean, minimum and maximum of each diagonal of a matrix [positions, positions] that has values
// other than NaN, by distance: query position - key position. Without `future` from 0 on.
chart::Series by_distance(const Positions& positions, std::span<const double> matrix, bool future);

// A value per distance, query position - key position. NaN marks masked keys.
using ByDistance = std::function<double(int64_t distance)>;
struct DistanceView {
  chart::Axis value;    // label of the value
  bool future = false;  // whether queries see later keys, at negative distances
};
chart::HeatMap pair_map(const PlotSubject& subject, const DistanceView& view,
                        const ByDistance& value);
chart::Series distance_series(const PlotSubject& subject, const DistanceView& view,
                              std::string name, const ByDistance& value);
// Wavelengths by pair on a logarithmic axis, and the trained length unless it is 0. Pairs with the
// frequency 0 are gaps.
struct Wavelengths {
  std::string name;
  std::vector<double> frequencies = {};  // radians per position
};
chart::LineChart wavelengths_chart(std::span<const Wavelengths> all, int64_t trained);

// The series as a staircase: each value until the next one's x.
chart::Series stairs(const chart::Series& series);
chart::LineChart distance_chart(const PlotSubject& subject, const DistanceView& view,
                                std::vector<chart::Series> series);

// Figures of vectors that are added to the input: the products p_i W_q W_k^T p_j in which they meet
// in attention, without W and with random ones, and how far distance alone explains them.

// Adds --heads, --head-dim and --seed.
std::vector<PlotOption> with_projections(std::vector<PlotOption> options);

// All figures of vectors that are added to the input: vector_figures() and these.
std::vector<Figure> added_figures(const PlotValues& values, const PlotSubject& subject,
                                  std::span<const double> rows);

}  // namespace sextant::cli
