// The figures that encodings share, made from their rows or from what they do at each distance.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/cli/plot/plotted.h"

namespace sextant::cli {

// The positions 0, step, 2 step, ... below length: what --length and --step say, which every method
// has.
struct Positions {
  int64_t step = 1;
  std::vector<int64_t> list;
};
std::vector<PlotOption> with_positions(std::vector<PlotOption> options, int64_t length = 128);
// Throws Error if there are more than a matrix of them can show.
Positions positions_of(const PlotValues& values);

// What the figures of one encoding have in common.
struct PlotSubject {
  std::string title;     // "Sinusoidal positions"
  std::string settings;  // "width 64, base 10000"
  Positions positions;
};

// Of an encoding that gives each position a vector, `rows` [positions, width]: the vectors; the
// cosine of the angle between each two; and that cosine against distance, its mean over all pairs
// of positions that far apart in a band from the least to the greatest. `cosine` is what a cosine
// means.
std::vector<Figure> vector_figures(const PlotSubject& subject, std::span<const double> rows,
                                   const chart::Axis& cosine);

// Of an encoding known by its scores alone, one [positions, positions] for each head, NaN where a
// key is not seen: those of the first head; and each head's against distance, the mean over all
// pairs that far apart, with a band from the least to the greatest if there is one head.
std::vector<Figure> score_figures(const PlotSubject& subject, std::span<const double> scores);

// Of an encoding that gives each distance, query position - key position, a number. NaN: not seen.
using ByDistance = std::function<double(int64_t distance)>;
struct DistanceView {
  chart::Axis value;    // what the number is
  bool future = false;  // whether queries see keys after them, at negative distances
};
chart::HeatMap pair_map(const PlotSubject& subject, const DistanceView& view,
                        const ByDistance& value);
chart::Series distance_series(const PlotSubject& subject, const DistanceView& view,
                              std::string name, const ByDistance& value);
chart::LineChart distance_chart(const PlotSubject& subject, const DistanceView& view,
                                std::vector<chart::Series> series);

}  // namespace sextant::cli
