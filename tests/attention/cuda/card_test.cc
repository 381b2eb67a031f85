// The cuda backend on a GPU: results and gradients of random problems are within the bounds of the
// float64 reference, those of the same kernels on fibers are so too, and repeated calls have the
// same bits. A program of its own, since machines with a GPU may have no test framework.
//
//   card_test             all cases on the GPU
//   card_test --fibers    the same with fibers in place of the GPU
//   card_test --smallest  one small case of each kind, for compute-sanitizer
//   card_test --only WORD groups whose name begins so, without pages and repeated calls
//   card_test --threads N cases at a time (all cores)
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sextant/attention/cuda/backend.h"
#include "tests/attention/cuda/device_call.h"
#include "tests/attention/cuda/fiber_backend.h"
#include "tests/attention/paged_keys.h"

namespace sextant::cuda {
namespace {

// The driver under test, and the same with less shared memory, for which smaller tiles are chosen.
Driver tested, with_less_memory;
constexpr int32_t kLessMemory = 99 * 1024;  // an sm_86 or sm_89

Machine machine_of_operands() { return {&tested, Products::kOfOperands}; }
Machine machine_of_float32() { return {&tested, Products::kFloat32}; }
Machine small_of_operands() { return {&with_less_memory, Products::kOfOperands}; }
Machine small_of_float32() { return {&with_less_memory, Products::kFloat32}; }

struct Case {
  RandomOptions options;
  bool rounds_products = false;  // by the type of the operands
  bool less_memory = false;
  bool beside_fibers = true;
};

const Backend& backend_of(const Case& c) {
  static const Backend backends[] = {
      backend_over<machine_of_float32>("float32", "", Device::kCuda),
      backend_over<machine_of_operands>("operands", "", Device::kCuda),
      backend_over<small_of_float32>("float32, less memory", "", Device::kCuda),
      backend_over<small_of_operands>("operands, less memory", "", Device::kCuda)};
  return backends[(c.less_memory ? 2 : 0) + (c.rounds_products ? 1 : 0)];
}

Case float32_case(const RandomOptions& options) { return {options}; }

Case rounded_case(RandomOptions options, DType type) {
  options.grows = false;
  options.dtypes = {.q = type, .k = type, .v = type, .q_imag = type, .d_out = type};
  options.dtypes.out = DType::kFloat32;
  // The columns of the fibers' few instances.
  const int64_t most = std::max(options.columns, options.value_columns);
  return {options, true, false, most <= (type == DType::kFloat16 ? 64 : 128)};
}

// Rows of each width that a kernel has instances for.
RandomOptions wide_options(int64_t columns) {
  RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = 67, .keys = 131};
  o.columns = columns;
  o.value_columns = columns == 200 ? 72 : columns;
  o.rotated = columns % 2 == 0;
  o.on_query = o.on_key = o.on_value = columns != 256;
  o.q_imag = columns == 96;
  return o;
}

struct Group {
  const char* name;
  std::vector<Case> cases;
};

std::vector<Group> groups(bool fibers) {
  Group float32 = {"float32 products", {}}, narrow = {"operands of 16 bits, float32 products", {}},
        bfloat16 = {"bfloat16 products", {}}, float16 = {"float16 products", {}},
        wide = {"wide rows", {}}, smaller = {"less shared memory", {}}, longer = {"long rows", {}};
  for (uint64_t seed = 0; seed < 160; ++seed)
    float32.cases.push_back(float32_case(draw_options(seed, seed % 10 == 0 ? 130 : 40)));
  for (uint64_t seed = 2000; seed < 2040; ++seed)
    narrow.cases.push_back(float32_case(draw_narrow_options(seed, 40)));
  for (uint64_t seed = 0; seed < 80; ++seed)
    bfloat16.cases.push_back(
        rounded_case(draw_options(seed, seed % 8 == 0 ? 130 : 40), DType::kBfloat16));
  for (uint64_t seed = 100; seed < 140; ++seed)
    float16.cases.push_back(rounded_case(draw_options(seed, 40), DType::kFloat16));
  for (const int64_t columns : {64, 65, 96, 128, 200, 256}) {
    wide.cases.push_back(float32_case(wide_options(columns)));
    for (const DType type : {DType::kBfloat16, DType::kFloat16})
      wide.cases.push_back(rounded_case(wide_options(columns), type));
  }
  smaller.cases = wide.cases;
  for (Case& c : smaller.cases) c.less_memory = true;
  // The oracle's time grows with the square of the rows, and that of fibers more.
  for (uint64_t seed = 300; seed < (fibers ? 302 : 316); ++seed) {
    RandomOptions options = draw_long_options(seed, 300);
    longer.cases.push_back(float32_case(options));
    longer.cases.push_back(rounded_case(options, DType::kBfloat16));
  }
  for (Case& c : longer.cases) c.beside_fibers = false;
  if (fibers)
    for (Group* group : {&float16, &wide, &smaller})
      std::erase_if(group->cases, [](const Case& c) { return !c.beside_fibers; });
  return {float32, narrow, bfloat16, float16, wide, smaller, longer};
}

std::vector<Group> smallest() {
  RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = 17, .keys = 35};
  o.columns = o.value_columns = 16;
  o.rotated = true;
  Group plain = {"rotated rows", {float32_case(o), rounded_case(o, DType::kBfloat16)}};
  o.weight = o.bias = o.on_query = o.on_key = o.on_value = o.sink = o.mask = true;
  o.query_bias = o.key_bias = true;
  o.sweeps = 2;
  o.dropout = 0.3;
  o.position_axes = 3;
  o.axis_bias = o.axis_on_query = true;
  Group all = {"all operands", {float32_case(o), rounded_case(o, DType::kFloat16)}};
  o.sink = false;
  o.query_sink = true;
  o.table_query = 33;
  Group of_queries = {"rows of each query", {float32_case(o), rounded_case(o, DType::kBfloat16)}};
  for (Group* group : {&plain, &all, &of_queries})
    for (Case& c : group->cases) c.beside_fibers = false;
  return {plain, all, of_queries};
}

// The greatest difference from the reference, in multiples of its bound, and the case.
struct Tally {
  double worst = 0, worst_of_fibers = 0;
  int failures = 0;
  int refused = 0;  // for sizes that do not fit into the lesser memory
  std::vector<std::string> messages;
};

void run(const Case& c, Tally& tally, std::mutex& mutex) {
  Outcome got(c.options);
  std::string message;
  double worst = 0, of_fibers = 0;
  try {
    compute(got, tested, backend_of(c));
    Expected expected(c.options, got);
    if (c.rounds_products) expected.allow_rounded_products(c.options.dtypes.q);
    for (const oracle::Worst& found : expected.differences(got)) {
      worst = std::max(worst, found.ratio);
      if (!(found.ratio <= 1)) message += "  " + found.where + "\n";
    }
    if (c.beside_fibers) {
      Outcome beside(c.options);
      compute(beside, fiber_driver(),
              c.rounds_products ? fiber_backend() : fiber_float32_backend());
      for (const oracle::Worst& found : expected.differences(beside))
        of_fibers = std::max(of_fibers, found.ratio);
    }
  } catch (const std::exception& error) {
    if (c.less_memory && std::string_view(error.what()).find("tiles fit") != std::string::npos) {
      const std::lock_guard lock(mutex);
      ++tally.refused;
      return;
    }
    message += std::string("  ") + error.what() + "\n";
    worst = std::numeric_limits<double>::infinity();
  }
  const std::lock_guard lock(mutex);
  tally.worst = std::max(tally.worst, worst);
  tally.worst_of_fibers = std::max(tally.worst_of_fibers, of_fibers);
  if (message.empty()) return;
  ++tally.failures;
  tally.messages.push_back(std::string(backend_of(c).name) + " " + to_string(c.options) +
                           (of_fibers > 1 ? " (fibers differ, too)\n" : "\n") + message);
}

// Calls f for 0 to count - 1, some at a time.
void in_parallel(size_t count, unsigned threads, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned n = 0; n < threads; ++n)
    workers.emplace_back([&] {
      for (size_t at = next++; at < count; at = next++) f(at);
    });
  for (std::thread& worker : workers) worker.join();
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool passes(const Group& group, unsigned threads) {
  const auto start = Clock::now();
  Tally tally;
  std::mutex mutex;
  in_parallel(group.cases.size(), threads, [&](size_t n) { run(group.cases[n], tally, mutex); });
  std::printf("%-40s %4zu cases %5d failed  worst %6.3f of the bound, on fibers %6.3f  %6.1f s\n",
              group.name, group.cases.size(), tally.failures, tally.worst, tally.worst_of_fibers,
              seconds_since(start));
  if (tally.refused > 0) std::printf("  %d cases do not fit and were refused\n", tally.refused);
  constexpr size_t kMostMessages = 5;
  for (size_t n = 0; n < std::min(tally.messages.size(), kMostMessages); ++n)
    std::printf("%s", tally.messages[n].c_str());
  std::fflush(stdout);
  return tally.failures == 0;
}

bool repeats_bits(int times) {
  const auto start = Clock::now();
  bool same = true;
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
    RandomOptions o = wide_options(64);
    o.bias = o.key_bias = o.sink = true;
    const Case c = type == DType::kFloat32 ? float32_case(o) : rounded_case(o, type);
    Outcome first(c.options);
    compute(first, tested, backend_of(c));
    for (int n = 1; n < times && same; ++n) {
      Outcome again(c.options);
      compute(again, tested, backend_of(c));
      const std::string difference = different_bits(first, again);
      same = difference.empty();
      if (!same)
        std::printf("call %d of %s: %s\n", n, c.rounds_products ? "bfloat16" : "float32",
                    difference.c_str());
    }
  }
  std::printf("%-40s %4d calls %5s  %58.1f s\n", "the same bits", 2 * times, same ? "" : "FAILED",
              seconds_since(start));
  return same;
}

// Whether two results have the same bits.
bool same(const Attended<float>& a, const Attended<float>& b) {
  const HostAnyView out(a.out), other_out(b.out);
  const HostView lse(a.lse), other_lse(b.lse);
  bool equal = true;
  for (int64_t n = 0; n < out.batch; ++n)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < out.rows; ++i) {
        equal = equal && lse(n, h, i, 0) == other_lse(n, h, i, 0);
        for (int64_t c = 0; c < out.columns; ++c)
          equal = equal && out(n, h, i, c) == other_out(n, h, i, c);
      }
  return equal;
}

// Keys and values in pages give the bits of contiguous ones.
bool reads_pages(int cases) {
  const auto start = Clock::now();
  int failures = 0;
  for (int n = 0; n < cases; ++n) {
    const auto seed = static_cast<uint64_t>(n);
    RandomOptions o = n % 2 == 0 ? draw_options(seed, 65) : draw_narrow_options(seed, 65);
    o.packed = 1;  // packed frames may begin at rows that are no multiple of kPageUnit
    const Backend& backend = backend_of(float32_case(o));
    RandomScore<float> random(o);
    random.score.scale = 0.2;
    const Attended<float> whole = random.new_attended(), paged = random.new_attended();
    try {
      attend_on(tested, random.score, whole, backend);
      attend_on(tested, Paged<float>(random.score, n % 3 == 0 ? 48 : 16, seed).score, paged,
                backend);
      if (same(whole, paged)) continue;
      std::printf("pages: other bits for %s\n", to_string(o).c_str());
    } catch (const std::exception& error) {
      std::printf("pages: %s for %s\n", error.what(), to_string(o).c_str());
    }
    ++failures;
  }
  std::printf("%-40s %4d cases %5d failed  %54.1f s\n", "pages", cases, failures,
              seconds_since(start));
  return failures == 0;
}

const char* less_memory(int32_t* bytes) {
  *bytes = kLessMemory;
  return nullptr;
}

int test(bool fibers, bool only_smallest, std::string_view only, unsigned threads) {
  if (!fibers && !why_no_cuda().empty()) {
    std::printf("NOTHING WAS TESTED: %s\n", why_no_cuda().c_str());
    return 1;
  }
  tested = fibers ? fiber_driver() : library_driver();
  with_less_memory = tested;
  with_less_memory.most_shared_bytes = less_memory;
  bool good = true;
  for (const Group& group : only_smallest ? smallest() : groups(fibers))
    if (std::string_view(group.name).starts_with(only)) good = passes(group, threads) && good;
  if (!only_smallest && only.empty()) {
    good = reads_pages(fibers ? 4 : 16) && good;
    good = repeats_bits(fibers ? 3 : 100) && good;
  }
  std::printf("%s\n", good ? "all passed" : "FAILED");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace sextant::cuda

int main(int count, char** words) {
  bool fibers = false, smallest = false;
  std::string_view only;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  for (int n = 1; n < count; ++n) {
    const std::string_view word = words[n];
    if (word == "--fibers") {
      fibers = true;
    } else if (word == "--smallest") {
      smallest = true;
    } else if (word == "--only" && n + 1 < count) {
      only = words[++n];
    } else if (word == "--threads" && n + 1 < count) {
      threads = static_cast<unsigned>(std::max(1, std::atoi(words[++n])));
    } else {
      std::fprintf(stderr,
                   "card_test: expected --fibers, --smallest, --only or --threads, but got %s\n",
                   words[n]);
      return 2;
    }
  }
  return sextant::cuda::test(fibers, smallest, only, threads);
}
