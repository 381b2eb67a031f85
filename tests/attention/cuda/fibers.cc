#include "tests/attention/cuda/fibers.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

// ThreadSanitizer must be told of each change of the stack. AddressSanitizer knows swapcontext().
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace sextant::cuda::fibers {

thread_local Running running;

namespace {

constexpr int kLanes = 32;
constexpr size_t kStackBytes = size_t{128} << 10;

enum class State { kReady, kWaitsForWarp, kWaitsForBlock, kDone };

// A stack of calls in the eyes of ThreadSanitizer.
class SeenStack {
 public:
#if defined(__SANITIZE_THREAD__)
  SeenStack() : seen_(__tsan_create_fiber(0)) {}
  ~SeenStack() { __tsan_destroy_fiber(seen_); }
  void* address() const { return seen_; }
  static void* current() { return __tsan_get_current_fiber(); }
  static void change_to(void* address) { __tsan_switch_to_fiber(address, 0); }
#else
  SeenStack() = default;
  void* address() const { return nullptr; }
  static void* current() { return nullptr; }
  static void change_to(void*) {}
#endif
  SeenStack(const SeenStack&) = delete;

 private:
  void* seen_ = nullptr;
};

// A fiber runs the threads of one number of all blocks, so its stack is entered once.
struct Fiber {
  ucontext_t context;
  SeenStack seen;
  std::unique_ptr<char[]> stack;
  State state = State::kReady;
  int products = 0, exchanges = 0, votes = 0;  // of this block so far
};

// The values that lanes of a warp show each other; two, so that one can be read while the next is
// written.
struct Slot {
  float x[kLanes];
  uint32_t a[kLanes][4], b[kLanes][2];
};

struct RunningBlock {
  std::vector<Fiber> fibers;
  std::vector<Slot> slots;  // [warps][2]
  std::vector<char> votes;  // of each barrier with a vote
  ucontext_t scheduler;
  void* seen_scheduler = nullptr;
  const std::function<void()>* body = nullptr;
};
thread_local RunningBlock now;

Fiber& current() { return now.fibers[static_cast<size_t>(running.thread)]; }

void resume(Fiber& fiber) {
  SeenStack::change_to(fiber.seen.address());
  swapcontext(&now.scheduler, &fiber.context);
}
void suspend(Fiber& fiber) {
  SeenStack::change_to(now.seen_scheduler);
  swapcontext(&fiber.context, &now.scheduler);
}

void enter() {
  while (true) {
    (*now.body)();
    current().state = State::kDone;
    suspend(current());
  }
}

void begin(Fiber& fiber) {
  fiber.stack = std::make_unique<char[]>(kStackBytes);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, enter, 0);
}

[[noreturn]] void stop(const char* message) {
  std::fprintf(stderr, "fibers: %s\n", message);
  std::abort();
}

// Runs each ready lane of a warp once; whether there was any.
bool run_lanes(int warp, Order order) {
  bool ran = false;
  for (int n = 0; n < kLanes; ++n) {
    const int lane = order == Order::kAscending ? n : kLanes - 1 - n;
    const int thread = warp * kLanes + lane;
    Fiber& fiber = now.fibers[static_cast<size_t>(thread)];
    if (fiber.state != State::kReady) continue;
    running.thread = thread;
    resume(fiber);
    ran = true;
  }
  return ran;
}

int count(int warp, State state) {
  int found = 0;
  for (int n = 0; n < kLanes; ++n)
    found += now.fibers[static_cast<size_t>(warp * kLanes + n)].state == state ? 1 : 0;
  return found;
}

void run_warp(int warp, Order order) {
  while (run_lanes(warp, order)) {
    const int waiting = count(warp, State::kWaitsForWarp);
    if (waiting == 0) continue;
    if (waiting != kLanes) stop("lanes of a warp wait at different barriers");
    for (int n = 0; n < kLanes; ++n)
      now.fibers[static_cast<size_t>(warp * kLanes + n)].state = State::kReady;
  }
}

void run_block(int threads, Order order) {
  const int warps = threads / kLanes;
  for (Fiber& fiber : now.fibers) {
    fiber.state = State::kReady;
    fiber.products = fiber.exchanges = fiber.votes = 0;
  }
  now.votes.clear();
  while (true) {
    for (int n = 0; n < warps; ++n) run_warp(order == Order::kAscending ? n : warps - 1 - n, order);
    int waiting = 0, done = 0;
    for (const Fiber& fiber : now.fibers) {
      waiting += fiber.state == State::kWaitsForBlock ? 1 : 0;
      done += fiber.state == State::kDone ? 1 : 0;
    }
    if (done == threads) return;
    if (waiting != threads) stop("threads of a block wait at different barriers");
    for (Fiber& fiber : now.fibers) fiber.state = State::kReady;
  }
}

Slot& slot(int number) {
  return now.slots[static_cast<size_t>(running.thread / kLanes * 2 + number % 2)];
}

}  // namespace

void run_grid(int64_t x, int y, int z, int threads, int shared_bytes, Order order,
              const std::function<void()>& body) {
  if (threads % kLanes != 0) stop("a block has whole warps only");
  now.body = &body;
  now.seen_scheduler = SeenStack::current();
  if (now.fibers.size() != static_cast<size_t>(threads)) {
    now.fibers = std::vector<Fiber>(static_cast<size_t>(threads));
    for (Fiber& fiber : now.fibers) begin(fiber);
    now.slots.resize(static_cast<size_t>(2 * threads / kLanes));
  }
  // Not a vector, so that a sanitizer sees the end of the block's memory.
  const auto shared = std::make_unique<char[]>(static_cast<size_t>(shared_bytes));
  for (int iz = 0; iz < z; ++iz)
    for (int iy = 0; iy < y; ++iy)
      for (int64_t ix = 0; ix < x; ++ix) {
        std::memset(shared.get(), 0xff, static_cast<size_t>(shared_bytes));
        running = {0, threads, {ix, iy, iz}, x, shared.get()};
        run_block(threads, order);
      }
}

void wait(Scope scope) {
  Fiber& fiber = current();
  const int thread = running.thread;
  fiber.state = scope == Scope::kWarp ? State::kWaitsForWarp : State::kWaitsForBlock;
  suspend(fiber);
  running.thread = thread;
}

float exchange(float x, int lanes) {
  Slot& shown = slot(current().exchanges++);
  const int lane = running.thread % kLanes;
  shown.x[lane] = x;
  wait(Scope::kWarp);
  return shown.x[lane ^ lanes];
}

bool any_in_block(bool mine) {
  const auto vote = static_cast<size_t>(current().votes++);
  if (now.votes.size() <= vote) now.votes.resize(vote + 1);
  now.votes[vote] = static_cast<char>(now.votes[vote] | (mine ? 1 : 0));
  wait(Scope::kThreadBlock);
  return now.votes[vote] != 0;
}

void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              float (*widen)(uint16_t)) {
  Slot& shown = slot(current().products++);
  const int lane = running.thread % kLanes, g = lane / 4, t = lane % 4;
  std::memcpy(shown.a[lane], a, sizeof a);
  std::memcpy(shown.b[lane], b, sizeof b);
  wait(Scope::kWarp);
  const auto part = [&](uint32_t word, int half) {
    return widen(static_cast<uint16_t>(word >> (16 * half)));
  };
  for (int e = 0; e < 4; ++e) {
    const int row = g + 8 * (e / 2), column = 2 * t + e % 2;
    float sum = c[e];
    for (int k = 0; k < 16; ++k)
      sum += part(shown.a[4 * (row % 8) + k % 8 / 2][row / 8 + 2 * (k / 8)], k % 2) *
             part(shown.b[4 * column + k % 8 / 2][k / 8], k % 2);
    c[e] = sum;
  }
}

}  // namespace sextant::cuda::fibers
