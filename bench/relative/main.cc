// bench_relative: relative attention by the C API, beside matrix products of OpenBLAS with all rows
// at once and by blocks of 128. bench/relative.py runs it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "bench/program.h"
#include "bench/relative/blas.h"
#include "bench/rounds.h"
#include "sextant/base/error.h"
#include "sextant/sextant.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  std::string block = "conformer", json;
  int64_t rows = 377;
  int threads = 1;
  RoundOptions rounds = {.rounds = 5, .least_seconds = 0.1};
};

std::vector<float> numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = normal(random);
  return x;
}

void expect_ok(sextant_status status) {
  if (status != SEXTANT_OK) fail(sextant_error());
}

// A layer, its arrays for the peer, and its plan.
struct Layer {
  RelativeLayer peer;
  std::vector<float> u, v, bias, unread;
  std::vector<int32_t> map;
  sextant_attention call = {sizeof call};
  sextant_terms terms = {sizeof terms};
  sextant_pool* pool = nullptr;
  sextant_plan* plan = nullptr;

  Layer(const Layer&) = delete;
  ~Layer() {
    sextant_plan_destroy(plan);
    sextant_pool_destroy(pool);
  }
  explicit Layer(const Options& o) {
    constexpr int64_t kBuckets = 256, kMostPositions = 512;
    RelativeLayer& p = peer;
    p.deberta = o.block == "deberta";
    p.rows = o.rows;
    const int64_t distances = 2 * p.rows - 1, count = p.heads * p.rows * p.columns;
    p.table_rows = p.deberta ? 2 * kBuckets : distances;
    p.scale = 1 / std::sqrt(static_cast<float>(p.columns) * (p.deberta ? 3.0F : 1.0F));
    p.q = numbers(count, 1), p.k = numbers(count, 2), p.v = numbers(count, 3);
    p.table = numbers(p.heads * p.table_rows * p.columns, 4);
    const auto array = [&](const std::vector<float>& x, int64_t rows) {
      return sextant_contiguous(x.data(), SEXTANT_FLOAT32, 1, p.heads, rows, p.columns);
    };
    const sextant_array table = array(p.table, p.table_rows);
    call.q = array(p.q, p.rows), call.k = array(p.k, p.rows), call.v = array(p.v, p.rows);
    call.scale = p.scale;
    call.sees = SEXTANT_ALL_KEYS;
    call.terms = &terms;
    if (p.deberta) {
      p.key_table = numbers(p.heads * p.table_rows * p.columns, 5);
      const sextant_array of_queries = array(p.key_table, p.table_rows);
      p.row_of.resize(static_cast<size_t>(distances));
      expect_ok(sextant_deberta_terms(&table, &of_queries, kBuckets, kMostPositions, p.rows - 1,
                                      distances, p.row_of.data(), &terms));
    } else {
      u = numbers(p.heads * p.columns, 6), v = numbers(p.heads * p.columns, 7);
      p.q_with_v = p.q;
      for (size_t n = 0; n < p.q.size(); ++n) {
        const size_t of_head = n / static_cast<size_t>(p.rows * p.columns);
        const size_t column = n % static_cast<size_t>(p.columns);
        p.q_with_v[n] += v[of_head * static_cast<size_t>(p.columns) + column];
      }
      bias.resize(static_cast<size_t>(p.heads * distances));
      unread = p.q;
      add_terms(call.q);  // q has u from here on, for the peer, too
    }
    if (o.threads > 1) expect_ok(sextant_pool_create(o.threads, &pool));
    expect_ok(sextant_plan_create(&call, "cpu", &plan));
  }
  // Computes the Conformer's terms, and adds u to q.
  void add_terms(const sextant_array& q) {
    const sextant_array table = sextant_contiguous(peer.table.data(), SEXTANT_FLOAT32, 1,
                                                   peer.heads, peer.table_rows, peer.columns);
    expect_ok(
        sextant_conformer_terms(u.data(), v.data(), &table, peer.scale, &q, bias.data(), &terms));
  }
  // The terms are those of each call, with a copy of q in place of q.
  void attend(std::vector<float>& out) {
    if (!peer.deberta) {
      sextant_array copy = call.q;
      copy.data = unread.data();
      add_terms(copy);
    }
    const sextant_array to =
        sextant_contiguous(out.data(), SEXTANT_FLOAT32, 1, peer.heads, peer.rows, peer.columns);
    expect_ok(sextant_plan_attend(plan, &call, &to, nullptr, pool));
  }
};

nlohmann::json measure(const Options& o) {
  constexpr int64_t kQueries = 128;
  Layer layer(o);
  std::vector<float> ours(layer.peer.q.size()), plain = ours, blocked = ours;
  const std::vector<Contestant> contestants = {
      {[&] { layer.attend(ours); }},
      {[&] { attend_by_blas(layer.peer, layer.peer.rows, o.threads, plain); }},
      {[&] { attend_by_blas(layer.peer, kQueries, o.threads, blocked); }}};
  const std::vector<Seconds> seconds = take_turns(contestants, o.rounds);
  double worst = 0;
  for (const auto* other : {&plain, &blocked})
    for (size_t n = 0; n < ours.size(); ++n)
      worst = std::max(worst, static_cast<double>(std::abs(ours[n] - (*other)[n])));
  if (!(worst < 1e-4)) fail(fmt::format("expected equal results, but they differ by {}", worst));
  const char* const names[] = {"Sextant", "plain", "blocked"};
  nlohmann::json result;
  for (size_t n = 0; n < seconds.size(); ++n) {
    result[names[n]] = to_json(seconds[n]);
    fmt::print("{:<10}{:10.3f} ms\n", names[n], 1e3 * seconds[n].least());
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Times relative attention beside OpenBLAS.");
  app.add_option("--block", o.block, "the layer")->check(CLI::IsMember({"conformer", "deberta"}));
  app.add_option("--rows", o.rows, "frames or tokens")->check(CLI::Range(2, 1 << 20));
  app.add_option("--threads", o.threads, "threads")->check(CLI::Range(1, 512));
  app.add_option("--rounds", o.rounds.rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_option("--json", o.json, "write all numbers to this file");
  CLI11_PARSE(app, argc, argv);
  return run_program(o.json, [&] { return measure(o); });
}
