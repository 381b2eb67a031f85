// Threads wait by spinning, as those of an engine's operation do, and yield after a while. A job is
// open while its tasks may be taken; `busy_` counts the threads that look at it, so the next job
// begins when none does.
#include "sextant/base/joint_call.h"

#include <string>
#include <thread>

#include "sextant/base/error.h"

namespace sextant {
namespace {

class Spin {
 public:
  void wait() {
    constexpr int kBeforeYield = 1000;
    if (++turns_ < kBeforeYield) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      std::this_thread::yield();
    }
  }

 private:
  int turns_ = 0;
};

}  // namespace

class JointCall::Team final : public Executor {
 public:
  void begin(int leader, int threads) { leader_ = leader, threads_ = threads; }
  int workers() const override { return threads_; }

  void run(int64_t tasks, const std::function<void(int64_t, int)>& task) const override {
    if (threads_ == 1 || tasks <= 1) {
      for (int64_t index = 0; index < tasks; ++index) task(index, leader_);
      return;
    }
    task_ = &task;
    tasks_ = tasks;
    error_ = nullptr;
    next_ = 0;
    open_ = true;
    work(leader_);
    open_ = false;
    for (Spin spin; busy_ > 0;) spin.wait();
    if (error_) std::rethrow_exception(error_);
  }

  void help(int worker) const {
    if (!open_.load(std::memory_order_relaxed)) return;
    ++busy_;
    if (open_) work(worker);
    --busy_;
  }

 private:
  void work(int worker) const {
    for (int64_t index; (index = next_++) < tasks_;) {
      try {
        (*task_)(index, worker);
      } catch (...) {
        const std::lock_guard lock(errors_);
        if (!error_) error_ = std::current_exception();
        next_ = tasks_;
      }
    }
  }

  int leader_ = 0, threads_ = 1;
  mutable const std::function<void(int64_t, int)>* task_ = nullptr;
  mutable int64_t tasks_ = 0;
  mutable std::atomic<int64_t> next_ = 0;
  mutable std::atomic<bool> open_ = false;
  mutable std::atomic<int> busy_ = 0;
  mutable std::mutex errors_;
  mutable std::exception_ptr error_;
};

JointCall::JointCall() : team_(std::make_unique<Team>()) {}
JointCall::~JointCall() = default;

// Runs the call if those before it are done and no other thread has begun it.
bool JointCall::lead(int ith, int nth, uint32_t number,
                     const std::function<void(const Executor&)>& call) {
  {
    const std::lock_guard lock(mutex_);
    if (begun_ + 1 != number || done_ + 1 != number) return false;
    for (int other = nth; other < most_; ++other) last_[static_cast<size_t>(other)] = number;
    team_->begin(ith, nth);
    begun_ = number;
  }
  std::exception_ptr error;
  try {
    call(*team_);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
    error_of_ = number;
  }
  done_ = number;
  if (error) std::rethrow_exception(error);
  return true;
}

void JointCall::run(int ith, int nth, const std::function<void(const Executor&)>& call) {
  const auto expect_between = [](const char* name, int got, int low, int high) {
    if (got < low || got > high)
      fail(std::string("joint call: ") + name + ": expected " + std::to_string(low) + " to " +
           std::to_string(high) + ", but got " + std::to_string(got));
  };
  expect_between("nth", nth, 1, kMostThreads);
  expect_between("ith", ith, 0, nth - 1);
  uint32_t number = 0;  // of this call
  {
    const std::lock_guard lock(mutex_);
    if (!last_) last_ = std::make_unique<uint32_t[]>(kMostThreads);
    for (; most_ < nth; ++most_) last_[static_cast<size_t>(most_)] = begun_;
    number = ++last_[static_cast<size_t>(ith)];
  }
  const auto reached = [number](uint32_t other) {
    return static_cast<int32_t>(other - number) >= 0;
  };
  for (Spin spin; !reached(begun_); spin.wait())
    if (lead(ith, nth, number, call)) return;
  for (Spin spin; !reached(done_); spin.wait()) team_->help(ith);
  const std::lock_guard lock(mutex_);
  if (error_of_ == number && error_) std::rethrow_exception(error_);
}

}  // namespace sextant
