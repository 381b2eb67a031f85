#include <algorithm>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/base/simd/amx.h"

namespace sextant::cpu {
namespace {

constexpr double kSecondsOfTask = 1e-4;
// Enough for the cores of one machine; each needs memory for its sums.
constexpr int64_t kTasks = 32;
constexpr int64_t kLanesOfTasks = 64;
constexpr int64_t kFloatsOfTables = int64_t{1} << 26;
constexpr int64_t kFloatsOfQueries = int64_t{1} << 26;  // sums of dq of all tasks

int64_t table_rows(const Problem& p) {
  return std::max({p.on_query.count16, p.on_key.count16, p.on_value.count16});
}

bool grows(const Problem& p) { return any_growth(p.rotations); }

// The keys of each frame of a batch entry, sorted.
std::vector<KeyRange> keys_of_frames(const Problem& p, int64_t batch) {
  std::vector<KeyRange> keys;
  for (size_t n = p.blocks_of_batch[static_cast<size_t>(batch)];
       n < p.blocks_of_batch[static_cast<size_t>(batch) + 1]; ++n) {
    const Frame& frame = p.blocks[n].frame;
    if (frame.keys > 0) keys.push_back({frame.key_row, frame.key_row + frame.keys});
  }
  std::ranges::sort(keys, {}, &KeyRange::first);
  return keys;
}

// Whether two frames have a key in common.
bool overlap(const std::vector<KeyRange>& keys) {
  for (size_t n = 1; n < keys.size(); ++n)
    if (keys[n].first < keys[n - 1].last) return true;
  return false;
}

// Whether each of `rows` rows is a key of exactly one frame.
bool cover_once(const std::vector<KeyRange>& keys, int64_t rows) {
  int64_t next = 0;
  for (const KeyRange& range : keys) {
    if (range.first != next) return false;
    next = range.last;
  }
  return next == rows;
}

}  // namespace

void lay_out(const Backward& backward, TableSums& sums, Arena& arena) {
  each_any_table([&](auto operand) {
    const auto& table = operand.of(backward.problem);
    if (operand.of(backward.grad) && table)
      operand.of(sums) = arena.floats((table.heads == 1 ? 1 : sums.heads) * table.size());
  });
}

Backward::Backward(const Problem& p, const HostAttended<const float>& attended,
                   const HostAnyView<const float>& from_above, const HostGrad<float>& gradients,
                   Workspace& memory)
    : problem(p), result(attended), d_out(from_above), grad(gradients) {
  mean = memory.floats(p.score.q.batch * p.score.q.heads * p.score.q.rows);
  cut_units();
  cut_tasks();
  cut_lanes();
}

void Backward::cut_units() {
  const Problem& p = problem;
  constexpr double kSecondsOfPair = 5e-11;  // per query, key, and column of k and v
  units.resize(static_cast<size_t>(p.score.q.batch));
  for (size_t n = 0; n < p.blocks.size(); ++n) {
    const Frame& frame = p.blocks[n].frame;
    for (int64_t unit = 0; unit * p.unit < frame.keys; ++unit)
      units[static_cast<size_t>(frame.batch)].push_back({n, unit});
    seconds += kSecondsOfPair * static_cast<double>(p.depth16 + p.width16) *
               static_cast<double>(p.score.q.heads) * static_cast<double>(frame.queries) *
               static_cast<double>(frame.keys);
  }
}

void Backward::cut_tasks() {
  const Problem& p = problem;
  const int64_t whole = p.score.k.batch * p.score.k.heads;
  if (whole == 0) return;
  int64_t most_units = 1;
  bool shared = false;
  for (const BatchFrame& block : p.blocks)
    most_units = std::max(most_units, (block.frame.keys + p.unit - 1) / p.unit);
  for (int64_t b = 0; b < p.score.k.batch; ++b) {
    const std::vector<KeyRange> keys = keys_of_frames(p, b);
    shared = shared || overlap(keys);
    keys_once = keys_once && cover_once(keys, p.score.k.rows);
  }
  splits = std::min(kSplits, most_units);
  // Two tasks must not add to one row of dk.
  cut = splits > 1 && !shared && whole < kTasks &&
        seconds / static_cast<double>(whole * splits) > kSecondsOfTask &&
        whole * splits * query_sums_size() <= kFloatsOfQueries;
  for (int64_t key_head = 0; key_head < p.score.k.heads; ++key_head)
    for (int64_t b = 0; b < p.score.k.batch; ++b)
      for (int64_t split = 0; split < splits; split += cut ? 1 : splits)
        tasks.push_back({key_head, b, split, cut ? split + 1 : splits});
}

void Backward::cut_lanes() {
  const Problem& p = problem;
  const auto count = static_cast<int64_t>(tasks.size());
  if (count == 0) return;
  const auto cut_into = [&](int64_t number) {
    lanes.clear();
    int64_t size = 0;
    for (int64_t n = 0; n < number; ++n) {
      TableTasks lane;
      lane.first_task = count * n / number;
      lane.last_task = count * (n + 1) / number;
      lane.sums.first_head = tasks[static_cast<size_t>(lane.first_task)].key_head * p.group;
      lane.sums.heads = (tasks[static_cast<size_t>(lane.last_task) - 1].key_head + 1) * p.group -
                        lane.sums.first_head;
      Arena measure;
      lay_out(*this, lane.sums, measure);
      lane.size = measure.used();
      size += lane.size;
      lanes.push_back(lane);
    }
    return size;
  };
  const auto worth = static_cast<int64_t>(std::min(seconds / kSecondsOfTask, 1e9));
  int64_t number = std::clamp<int64_t>(worth, 1, std::min(count, kLanesOfTasks));
  int64_t size = cut_into(number);
  while (size > kFloatsOfTables && number > 1) size = cut_into(number = (number + 1) / 2);
}

RowSets::RowSets(const Panels& like, const Problem& p, int64_t rows, Side side, Arena& arena)
    : rotated(arena.take<float*>(static_cast<int64_t>(p.rotations.list.size()))) {
  const int64_t size = round_up(rows, kLanes) * p.depth16;
  if (like.has_plain) plain = arena.floats(size);
  for (size_t rotation = 0; rotation < p.rotations.list.size(); ++rotation) {
    float* own = Panels::rotation(p.rotations.list[rotation], side) ? arena.floats(size) : plain;
    if (rotated) rotated[rotation] = own;
  }
}

BackwardTiled::BackwardTiled(const Problem& p, float* scores, Arena& arena) {
  if (p.terms == 0) return;
  const auto rotations = static_cast<int64_t>(p.rotations.list.size());
  const auto in_terms = [&](int64_t size, int64_t& step) {
    step = size;
    return arena.floats(p.terms * size);
  };
  const auto each_rotation = [&](const auto& floats) {
    float** const list = arena.take<float*>(rotations);
    for (int64_t rotation = 0; rotation < rotations; ++rotation) {
      float* const own = floats();
      if (list) list[rotation] = own;
    }
    return list;
  };
  products = each_rotation(
      [&] { return rotations == 1 ? scores : arena.floats(kQueryBlock * kScoreStride); });
  key_lines = each_rotation([&] { return in_terms(amx::paired(p.unit) * p.depth16, key_step); });
  values = in_terms(p.unit * amx::paired(p.width16), value_step);
  queries_across = each_rotation([&] { return in_terms(p.depth16 * kQueryBlock / 2, query_step); });
  d_out = in_terms(kQueryBlock * amx::paired(p.width16), d_out_step);
  d_out_across = in_terms(p.width16 * kQueryBlock / 2, d_out_across_step);
  weights = in_terms(kQueryBlock / 2 * kScoreStride, line_step);
  grads = in_terms(kQueryBlock / 2 * kScoreStride, line_step);
  grad_rows = in_terms(kQueryBlock * kPairStride, row_step);
  key_sums = each_rotation([&] { return arena.floats(p.depth16 * kScoreStride); });
  value_sums = arena.floats(p.width16 * kScoreStride);
  panel = arena.floats(kLanes * std::max(p.depth16, p.width16));
}

BackwardScratch::BackwardScratch(const Backward& b, Arena& arena)
    : visibility(b.problem, kQueryBlock, arena),
      keys(b.problem, Side::kKey, static_cast<bool>(b.problem.on_key), b.problem.unit, arena),
      key_rows(keys, b.problem, b.problem.unit, Side::kKey, arena),
      key_grads(keys, b.problem, b.problem.unit, Side::kKey, arena),
      queries(b.problem, Side::kQuery, b.problem.reads_plain_queries(), kQueryBlock, arena),
      query_rows(queries, b.problem, kQueryBlock, Side::kQuery, arena) {
  const Problem& p = b.problem;
  const bool modulus = static_cast<bool>(p.score.q_imag);
  const auto query_panels = [&] { return Panels(p, Side::kQuery, false, kQueryBlock, arena); };
  if (grows(p)) grown = query_panels();
  if (modulus) {
    imaginary = query_panels();
    imaginary_rows = RowSets(imaginary, p, kQueryBlock, Side::kQuery, arena);
    if (grows(p)) grown_imaginary = query_panels();
  }
  values = arena.floats(p.unit * p.width16);
  value_grads = arena.floats(p.unit * p.width16);
  d_out = arena.floats(kQueryBlock * p.width16);
  lse = arena.floats(kQueryBlock);
  mean = arena.floats(kQueryBlock);

  const auto block_lines = [&](bool wanted) {
    float* const room = wanted ? arena.floats(kLineMargin + kQueryBlock * kScoreStride) : nullptr;
    return room ? room + kLineMargin : nullptr;
  };
  const bool several = p.rotations.list.size() > 1;
  weights = block_lines(true);
  grads = block_lines(true);
  imaginary_grads = block_lines(modulus);
  rotation_grads = block_lines(several);
  rotation_imaginary_grads = block_lines(several && modulus);
  key_products = KeyProducts(p, kQueryBlock, arena);

  const auto strip_lines = [&](bool wanted) {
    return wanted ? arena.floats(kStrip * kScoreStride) : nullptr;
  };
  // Whether products are kept for their gradients: the scores have another shape.
  const bool keep = p.weight || modulus || p.score.softcap > 0;
  const bool knows_products = p.terms > 0;  // AMX: `second` holds the other terms
  second.scores = strip_lines(several || knows_products);
  second.real = keep ? strip_lines(several || knows_products) : second.scores;
  second.imaginary = strip_lines(several && modulus);
  real = strip_lines(keep);
  imaginary_product = strip_lines(modulus);
  weighted = strip_lines(static_cast<bool>(p.weight));

  table_products = arena.fenced_floats(kQueryBlock * table_rows(p));
  rotated_grads = arena.floats(kQueryBlock * p.depth16);
  const auto wanted_floats = [&](bool wanted, int64_t count) {
    return wanted ? arena.floats(count) : nullptr;
  };
  const bool has_r = p.table_query16 > 0, has_axes = static_cast<bool>(p.axis_on_query);
  table_queries = wanted_floats(has_r, kQueryBlock * p.table_query16);
  table_grads = wanted_floats(has_r || has_axes, kQueryBlock * p.table_columns16());
  score_grads = has_r && keep ? block_lines(true) : grads;
  const int64_t products = p.group * p.score.q.rows * p.axis_columns;
  axis_products = wanted_floats(has_axes, products);
  axis_grads = wanted_floats(has_axes, products);
  axis_scratch = wanted_floats(has_axes, kQueryBlock * p.axis_on_query.count16);
  panel = arena.floats(kLanes * p.depth16);
  factors = arena.floats(p.depth16);
  tiled = BackwardTiled(p, weights, arena);
  const bool own_sums = !b.cut && b.wants_queries();
  query_sums = own_sums ? arena.floats(b.query_sums_size()) : nullptr;
  split_sums = own_sums && b.splits > 1 ? arena.floats(b.query_sums_size()) : nullptr;
}

}  // namespace sextant::cpu
