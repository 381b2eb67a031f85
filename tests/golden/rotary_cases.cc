// Rotated queries and keys: RoPE in its pairings, several axes, growth, and piecewise positions.
#include <algorithm>
#include <cmath>

#include "sextant/base/error.h"
#include "sextant/position/spectrum.h"
#include "tests/golden/trial.h"

namespace sextant::golden {
namespace {

std::vector<int64_t> counted(int64_t first, int64_t count) {
  std::vector<int64_t> rotary_positions;
  for (int64_t i = 0; i < count; ++i) rotary_positions.push_back(first + i);
  return rotary_positions;
}

// Pairs of adjacent or half-split columns from column 0 on, with the file's speeds.
Spectrum spectrum_of(const Doubles& speeds, Pairing pairing) {
  const int half = static_cast<int>(speeds.size());
  Spectrum spectrum;
  for (int f = 0; f < half; ++f) {
    const int first = pairing == Pairing::kHalfSplit ? f : 2 * f;
    const int second = pairing == Pairing::kHalfSplit ? f + half : 2 * f + 1;
    spectrum.pairs.push_back(
        {.first = first, .second = second, .speed = speeds[static_cast<size_t>(f)]});
  }
  return spectrum;
}

double greatest(const std::vector<int64_t>& rotary_positions) {
  double most = 0;
  for (const int64_t t : rotary_positions) most = std::max(most, std::abs(static_cast<double>(t)));
  return most;
}

void turn(Trial& trial, const Spectrum& spectrum, std::vector<int64_t> query_rotary_positions,
          std::vector<int64_t> key_rotary_positions) {
  oracle::OwnedSweep& sweep = trial.problem.sweeps.at(0);
  sweep.rotation = rotation(spectrum);
  // The files' angles are products in float64, with an error of half an ulp of the angle.
  trial.tolerance +=
      0x1p-52 * std::max(greatest(query_rotary_positions), greatest(key_rotary_positions));
  sweep.query_rotary_positions = std::move(query_rotary_positions);
  sweep.key_rotary_positions = std::move(key_rotary_positions);
}

// RoPE with speeds from our own formula, which must equal those of the file.
Trial rope(const Golden& golden, Pairing pairing, int64_t sense) {
  Trial trial = plain_trial(golden);
  const Spectrum spectrum =
      rotary({.dim = golden.meta().value("rotary_dim", trial.problem.q.columns),
              .base = golden.meta().value("base", 10000.0),
              .pairing = pairing});
  Doubles speeds;
  for (const auto& pair : spectrum.pairs) speeds.push_back(static_cast<double>(pair.speed));
  if (const std::string wrong = difference("inv_freq", speeds, golden.numbers("inv_freq"), 1e-15);
      !wrong.empty()) {
    fail("golden: " + golden.name() + ": " + wrong);
  }
  auto query_rotary_positions = golden.integers("pos_q"),
       key_rotary_positions = golden.integers("pos_k");
  for (auto* rotary_positions : {&query_rotary_positions, &key_rotary_positions}) {
    for (int64_t& t : *rotary_positions) t *= sense;
  }
  turn(trial, spectrum, std::move(query_rotary_positions), std::move(key_rotary_positions));
  return trial;
}

Trial half_split(const Golden& golden) { return rope(golden, Pairing::kHalfSplit, 1); }
Trial interleaved(const Golden& golden) { return rope(golden, Pairing::kInterleaved, 1); }
Trial clockwise(const Golden& golden) { return rope(golden, Pairing::kHalfSplit, -1); }

// p-RoPE with the file's speeds, some of which are 0.
Trial proportional(const Golden& golden) {
  Trial trial = plain_trial(golden);
  const auto rotary_positions = counted(0, trial.problem.q.rows);
  turn(trial, spectrum_of(golden.numbers("inv_freq"), Pairing::kHalfSplit), rotary_positions,
       rotary_positions);
  return trial;
}

Trial three_axes(const Golden& golden) {
  Trial trial = plain_trial(golden);
  Spectrum spectrum = spectrum_of(golden.numbers("inv_freq"), Pairing::kHalfSplit);
  const auto axes = golden.integers("axis_of_pair");
  for (size_t f = 0; f < axes.size(); ++f) spectrum.pairs[f].axis = static_cast<int>(axes[f]);
  turn(trial, spectrum, golden.integers("positions"), golden.integers("positions"));
  return trial;
}

// Token n of an image is at (n mod width, n div width); the first half of the pairs rotates by x,
// the second by y.
Trial picture(const Golden& golden) {
  Trial trial = plain_trial(golden);
  const auto columns = static_cast<int>(trial.problem.q.columns);
  const int64_t width = golden.meta().at("grid").at(0).get<int64_t>();
  Spectrum spectrum;
  for (int f = 0; f < columns / 2; ++f) {
    const int step = f % (columns / 4);
    spectrum.pairs.push_back({.first = 2 * f,
                              .second = 2 * f + 1,
                              .speed = std::pow(100.0, -4.0 * step / columns),
                              .axis = f / (columns / 4)});
  }
  std::vector<int64_t> places;
  for (int64_t n = 0; n < trial.problem.q.rows; ++n) places.push_back(n % width);
  for (int64_t n = 0; n < trial.problem.q.rows; ++n) places.push_back(n / width);
  turn(trial, spectrum, places, places);
  return trial;
}

Trial xpos(const Golden& golden) {
  Trial trial = plain_trial(golden);
  const auto half = static_cast<int>(trial.problem.q.columns / 2);
  Doubles speeds;
  for (int f = 0; f < half; ++f)
    speeds.push_back(std::pow(10000.0, -static_cast<double>(f) / half));
  Spectrum spectrum = spectrum_of(speeds, golden.name().find("halfsplit") == std::string::npos
                                              ? Pairing::kInterleaved
                                              : Pairing::kHalfSplit);
  for (int f = 0; f < half; ++f) {
    const double zeta = (2.0 * f + 0.4 * 2 * half) / (1.4 * 2 * half);
    spectrum.pairs[static_cast<size_t>(f)].growth =
        std::log(zeta) / golden.meta().at("scale_base").get<double>();
  }
  turn(trial, spectrum, counted(trial.problem.k.rows - trial.problem.q.rows, trial.problem.q.rows),
       counted(0, trial.problem.k.rows));
  return trial;
}

// Multiplies query i and its gradient by factors[i].
void scale_queries(Trial& trial, const Doubles& factors) {
  const auto multiply = [factors](oracle::Tensor<double> x) {
    for (int64_t n = 0; n < static_cast<int64_t>(x.data.size()); ++n) {
      x.data[static_cast<size_t>(n)] *= factors[static_cast<size_t>(n / x.columns % x.rows)];
    }
    return x;
  };
  trial.problem.q = multiply(trial.problem.q);
  trial.answers = [multiply, before = trial.answers](const auto& result, auto gradients) {
    gradients.q = multiply(gradients.q);
    return before(result, gradients);
  };
}

// A sweep with explicit rotary positions. query_offset is in positions: the phase of a pair is its
// speed times query_offset.
struct Piece {
  std::vector<KeyRange> key_ranges = {};
  std::vector<int64_t> query_rotary_positions = {}, key_rotary_positions = {};
  double divisor = 1;  // divides the speeds
  double query_offset = 0;
};

void take_pieces(Trial& trial, const Doubles& speeds, const std::vector<Piece>& pieces,
                 double gain = 1) {
  trial.problem.sweeps.clear();
  for (const Piece& piece : pieces) {
    Spectrum spectrum = spectrum_of(speeds, Pairing::kHalfSplit);
    spectrum.gain = gain;
    oracle::OwnedSweep sweep{.key_ranges = piece.key_ranges,
                             .query_rotary_positions = piece.query_rotary_positions,
                             .key_rotary_positions = piece.key_rotary_positions};
    for (auto& pair : spectrum.pairs) {
      sweep.query_offset.push_back(turns(pair.speed * Real(piece.query_offset)));
      pair.speed = pair.speed / Real(piece.divisor);
    }
    sweep.rotation = rotation(spectrum);
    trial.problem.sweeps.push_back(std::move(sweep));
  }
}

// near_ranges: the query itself and the keys less than `window` before it; far_runs: the earlier
// keys.
std::vector<KeyRange> near_ranges(int64_t queries, int64_t first_query, int64_t window) {
  std::vector<KeyRange> key_ranges;
  for (int64_t i = first_query; i < first_query + queries; ++i) {
    key_ranges.push_back({std::max<int64_t>(0, i - window + 1), i + 1});
  }
  return key_ranges;
}
std::vector<KeyRange> far_runs(int64_t queries, int64_t first_query, int64_t window) {
  std::vector<KeyRange> key_ranges = near_ranges(queries, first_query, window);
  for (KeyRange& run : key_ranges) run = {0, run.first};
  return key_ranges;
}

std::vector<int64_t> divided(std::vector<int64_t> rotary_positions, int64_t divisor) {
  for (int64_t& t : rotary_positions) t /= divisor;
  return rotary_positions;
}

// Two pieces: distances below the window unchanged, larger ones as in `far`.
Trial windowed(const Golden& golden, int64_t window, Piece far) {
  Trial trial = plain_trial(golden);
  const oracle::Problem<double>& p = trial.problem;
  const int64_t queries = p.q.rows, keys = p.k.rows, first = keys - queries;
  far.key_ranges = far_runs(queries, first, window);
  if (far.query_rotary_positions.empty()) {
    far.query_rotary_positions = counted(first, queries);
    far.key_rotary_positions = counted(0, keys);
  }
  take_pieces(trial, golden.numbers("inv_freq"),
              {{.key_ranges = near_ranges(queries, first, window),
                .query_rotary_positions = counted(first, queries),
                .key_rotary_positions = counted(0, keys)},
               far});
  if (golden.has("q_scale")) scale_queries(trial, golden.numbers("q_scale"));
  if (golden.meta().contains("training_length") && !golden.has("q_scale")) {
    const double trained = golden.meta().at("training_length").get<double>();
    const double factor = std::log(static_cast<double>(keys)) / std::log(trained);
    scale_queries(trial, {std::max(1.0, factor)});
  }
  return trial;
}

// ReRoPE: the relative position beyond the window is the window.
Trial rerope(const Golden& golden) {
  const auto window = golden.meta().at("window").get<int64_t>();
  const Trial plain = plain_trial(golden);
  return windowed(
      golden, window,
      {.query_rotary_positions = std::vector<int64_t>(static_cast<size_t>(plain.problem.q.rows)),
       .key_rotary_positions = std::vector<int64_t>(static_cast<size_t>(plain.problem.k.rows)),
       .query_offset = static_cast<double>(window)});
}

// Leaky ReRoPE: relative positions beyond the window grow by 1 / k per token.
Trial leaky(const Golden& golden) {
  const auto window = golden.meta().at("window").get<int64_t>();
  const double k = golden.meta().at("scaling_factor").get<double>();
  return windowed(golden, window,
                  {.divisor = k, .query_offset = static_cast<double>(window) * (1 - 1 / k)});
}

// Self-Extend: beyond the window, positions are divided by the group size and rounded down.
Trial self_extend(const Golden& golden) {
  const auto window = golden.meta().at("neighbor_window").get<int64_t>();
  const auto group = golden.meta().at("group_size").get<int64_t>();
  const Trial plain = plain_trial(golden);
  const int64_t queries = plain.problem.q.rows, keys = plain.problem.k.rows;
  const auto w = static_cast<double>(window);
  return windowed(golden, window,
                  {.query_rotary_positions = divided(counted(keys - queries, queries), group),
                   .key_rotary_positions = divided(counted(0, keys), group),
                   .query_offset = w - w / static_cast<double>(group)});
}

// Dual chunk attention: pieces for the query's own chunk, the chunk before, and older chunks.
Trial dual_chunk(const Golden& golden) {
  Trial trial = plain_trial(golden);
  const int64_t keys = trial.problem.k.rows, first = keys - trial.problem.q.rows;
  const auto size = golden.meta().at("chunk_size").get<int64_t>();
  const int64_t chunk = size - golden.meta().at("local_window").get<int64_t>();
  std::vector<int64_t> key_rotary_positions = counted(0, keys);
  for (int64_t& t : key_rotary_positions) t %= chunk;
  std::vector<Piece> pieces(3);
  for (int64_t i = first; i < keys; ++i) {
    const int64_t start = i / chunk * chunk, before = std::max<int64_t>(0, start - chunk);
    const KeyRange key_ranges[] = {{start, i + 1}, {before, start}, {0, before}};
    const int64_t rotary_positions[] = {i % chunk, std::min(i % chunk + chunk, size),
                                        std::min(2 * chunk - 1, size)};
    for (size_t n = 0; n < 3; ++n) {
      pieces[n].key_ranges.push_back(key_ranges[n]);
      pieces[n].query_rotary_positions.push_back(rotary_positions[n]);
    }
  }
  for (Piece& piece : pieces) piece.key_rotary_positions = key_rotary_positions;
  take_pieces(trial, golden.numbers("inv_freq"), pieces, golden.meta().value("mscale", 1.0));
  // The official code merges three attentions and does not differentiate the weights of the merge.
  // With these weights fixed, the formula gives the file's gradients to 1e-15; with their
  // gradients, it gives ours.
  for (const char* name : {"dq", "dk"}) {
    trial.excused[name] = "the official code holds the weights of its merge fixed";
  }
  return trial;
}

// StreamingLLM: the first keys and the latest ones, at their indices in the cache.
Trial streaming(const Golden& golden) {
  Trial trial = plain_trial(golden);
  const auto start = golden.meta().at("start_size").get<int64_t>();
  const auto recent = golden.meta().at("recent_size").get<int64_t>();
  const int64_t rows = trial.problem.q.rows;
  Piece sinks{.key_rotary_positions = counted(0, rows)};
  Piece latest{.query_rotary_positions = counted(0, rows),
               .key_rotary_positions = counted(0, rows)};
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t kept = std::min(i, start + recent);
    const int64_t first = std::min(start, i);
    sinks.key_ranges.push_back({0, first});
    sinks.query_rotary_positions.push_back(kept);
    latest.key_ranges.push_back({std::max(first, i - recent), i + 1});
  }
  take_pieces(trial, golden.numbers("inv_freq"), {sinks, latest});
  return trial;
}

}  // namespace

const std::vector<Family>& rotary_families() {
  static const std::vector<Family> families = {
      {"rope_neox_", half_split},
      {"rope_gptj_", interleaved},
      {"rope_glm_", interleaved},
      {"rope_meta_complex", interleaved},
      {"rope_clockwise_nanochat", clockwise},
      {"prope_", proportional},
      {"mrope_qwen", three_axes},
      {"rope2d_vit_axial", picture},
      {"xpos_causal", xpos},
      {"xpos_bidirectional", xpos},
      {"xpos_decode", xpos},
      {"xpos_chunked", xpos},
      {"xpos_halfsplit", xpos},
      {"rerope_prefill", rerope},
      {"rerope_decode", rerope},
      {"leaky_prefill", leaky},
      {"leaky_decode", leaky},
      {"selfextend_", self_extend},
      {"dca_", dual_chunk},
      {"streamingllm_steps", streaming},
  };
  return families;
}

}  // namespace sextant::golden
