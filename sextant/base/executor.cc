#include "sextant/base/executor.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

// Threads wait for as long as this at a time. g++ 12's wait() without an end has a symbol version
// that the libstdc++ of RHEL 9 lacks.
constexpr std::chrono::hours kLongest{1};

using Task = std::function<void(int64_t index, int worker)>;

class SerialExecutor final : public Executor {
 public:
  int workers() const override { return 1; }
  void run(int64_t tasks, const Task& task) const override {
    for (int64_t index = 0; index < tasks; ++index) task(index, 0);
  }
};

// The calling thread is worker 0. The pool runs one job at a time: a second thread that calls run()
// waits until the first job is done.
class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(int threads) {
    for (int worker = 1; worker < threads; ++worker)
      threads_.emplace_back([this, worker](const std::stop_token& stop) { serve(stop, worker); });
  }
  int workers() const override { return static_cast<int>(threads_.size()) + 1; }

  void run(int64_t tasks, const Task& task) const override {
    if (threads_.empty() || tasks <= 1) return SerialExecutor().run(tasks, task);
    const std::lock_guard one_job(jobs_);
    {
      const std::lock_guard lock(mutex_);
      task_ = &task;
      next_ = 0;
      tasks_ = tasks;
      busy_ = static_cast<int>(threads_.size());
      error_ = nullptr;
      ++job_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, kLongest, [this] { return busy_ == 0; })) {
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void serve(const std::stop_token& stop, int worker) {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, stop, kLongest, [&] { return job_ != seen; }))
          if (stop.stop_requested()) return;
        seen = job_;
      }
      work(worker);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  // Tasks are long (0.1 ms and more), so the cost of the lock does not show.
  void work(int worker) const {
    for (;;) {
      int64_t index;
      {
        const std::lock_guard lock(mutex_);
        if (next_ >= tasks_ || error_) return;
        index = next_++;
      }
      try {
        (*task_)(index, worker);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }

  mutable std::mutex jobs_, mutex_;
  mutable std::condition_variable_any wake_;
  mutable std::condition_variable done_;
  mutable const Task* task_ = nullptr;
  mutable int64_t next_ = 0, tasks_ = 0;
  mutable int busy_ = 0;
  mutable uint64_t job_ = 0;
  mutable std::exception_ptr error_;
  std::vector<std::jthread> threads_;  // last, so that the threads join before other members go
};

}  // namespace

const Executor& serial_executor() {
  static const SerialExecutor executor;
  return executor;
}

std::unique_ptr<Executor> make_thread_pool(int threads) {
  if (threads < 1 || threads > kMostThreads)
    fail("thread pool: threads: expected 1 to " + std::to_string(kMostThreads) + ", but got " +
         std::to_string(threads));
  return std::make_unique<ThreadPool>(threads);
}

}  // namespace sextant
