#include "sextant/cli/plot/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sextant/error.h"

namespace sextant::cli {
namespace {

constexpr int64_t kMostPositions = 2048;  // to a side of a matrix; 34 MB of .npy
constexpr int64_t kMostLength = int64_t{1} << 40;

const chart::Axis kDistance = {.label = "distance: query position − key position",
                               .unit = "tokens"};

chart::HeatMap empty_map(const Subject& subject, const std::string& title) {
  chart::HeatMap map;
  map.title = subject.title + ": " + title;
  map.subtitle = subject.settings;
  map.rows = {.count = static_cast<int64_t>(subject.positions.list.size()),
              .step = static_cast<double>(subject.positions.step)};
  map.y = {.label = "position"};
  return map;
}

chart::HeatMap square_map(const Subject& subject, const std::string& title) {
  chart::HeatMap map = empty_map(subject, title);
  map.columns = map.rows;
  map.y = {.label = "query position"};
  map.x = {.label = "key position"};
  return map;
}

chart::HeatMap row_map_of(const Subject& subject, std::span<const double> rows) {
  chart::HeatMap map = empty_map(subject, "the vector of each position");
  map.columns.count = static_cast<int64_t>(rows.size()) / map.rows.count;
  map.x = {.label = "dimension"};
  map.value = {.label = "value"};
  map.values.assign(rows.begin(), rows.end());
  map.colours = chart::Colours::kDiverging;
  return map;
}

// [positions, positions]; NaN where a vector is zero.
std::vector<double> cosines(std::span<const double> rows, size_t count) {
  const size_t width = rows.size() / count;
  const auto dot = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t c = 0; c < width; ++c) sum += rows[i * width + c] * rows[j * width + c];
    return sum;
  };
  std::vector<double> length(count), out(count * count);
  for (size_t i = 0; i < count; ++i) length[i] = std::sqrt(dot(i, i));
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const double norm = length[i] * length[j];
      const double cosine = norm > 0 ? dot(i, j) / norm : std::nan("");
      out[i * count + j] = out[j * count + i] = cosine;
    }
  }
  return out;
}

// Mean, least and greatest of each diagonal at or below the main one.
chart::Series by_diagonal(const Positions& positions, std::span<const double> matrix) {
  const size_t count = positions.list.size();
  chart::Series out;
  for (size_t apart = 0; apart < count; ++apart) {
    double sum = 0, least = INFINITY, greatest = -INFINITY;
    size_t seen = 0;
    for (size_t j = 0; j + apart < count; ++j) {
      const double value = matrix[(j + apart) * count + j];
      if (std::isnan(value)) continue;
      sum += value;
      ++seen;
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
    out.x.push_back(static_cast<double>(positions.list[apart]));
    out.y.push_back(seen == 0 ? std::nan("") : sum / static_cast<double>(seen));
    out.low.push_back(least);
    out.high.push_back(greatest);
  }
  return out;
}

}  // namespace

std::vector<PlotOption> with_positions(std::vector<PlotOption> options, int64_t length) {
  options.push_back({"length", "draw positions below this", std::to_string(length)});
  options.push_back({"step", "every so many positions", "1"});
  return options;
}

Positions positions_of(const PlotValues& values) {
  const int64_t length = values.integer("length", 1, kMostLength);
  Positions out = {.step = values.integer("step", 1, kMostLength), .list = {}};
  const int64_t count = (length - 1) / out.step + 1;
  if (count > kMostPositions) {
    fail(
        fmt::format("plot {}: --length {} with --step {}: expected at most {} positions, but got "
                    "{}; --step {} would do",
                    values.method(), length, out.step, kMostPositions, count,
                    (length - 1) / kMostPositions + 1));
  }
  for (int64_t i = 0; i < count; ++i) out.list.push_back(i * out.step);
  return out;
}

std::vector<Figure> vector_figures(const Subject& subject, std::span<const double> rows,
                                   const chart::Axis& cosine) {
  chart::HeatMap similarity = square_map(subject, cosine.label + " between positions");
  similarity.value = cosine;
  similarity.values = cosines(rows, subject.positions.list.size());

  chart::LineChart line;
  line.title = subject.title + ": " + cosine.label + " against distance";
  line.subtitle = subject.settings;
  line.x = {.label = "distance", .unit = "tokens"};
  line.y = cosine;
  line.series = {by_diagonal(subject.positions, similarity.values)};
  return {{"vectors", row_map_of(subject, rows)}, {cosine.label, similarity}, {"distance", line}};
}

chart::HeatMap pair_map(const Subject& subject, const DistanceView& view, const ByDistance& value) {
  chart::HeatMap map = square_map(subject, view.value.label + " between positions");
  map.value = view.value;
  for (const int64_t query : subject.positions.list) {
    for (const int64_t key : subject.positions.list) {
      const int64_t distance = query - key;
      map.values.push_back(distance < 0 && !view.future ? std::nan("") : value(distance));
    }
  }
  return map;
}

chart::Series distance_series(const Subject& subject, const DistanceView& view, std::string name,
                              const ByDistance& value) {
  chart::Series out = {.name = std::move(name)};
  const std::vector<int64_t>& list = subject.positions.list;
  const auto add = [&](int64_t distance) {
    out.x.push_back(static_cast<double>(distance));
    out.y.push_back(value(distance));
  };
  if (view.future) {
    for (size_t i = list.size() - 1; i > 0; --i) add(-list[i]);
  }
  for (const int64_t distance : list) add(distance);
  return out;
}

chart::LineChart distance_chart(const Subject& subject, const DistanceView& view,
                                std::vector<chart::Series> series) {
  chart::LineChart line;
  line.title = subject.title + ": " + view.value.label + " against distance";
  line.subtitle = subject.settings;
  line.x = kDistance;
  line.y = view.value;
  line.series = std::move(series);
  if (view.future) line.markers = {{0, "the query itself"}};
  return line;
}

}  // namespace sextant::cli
