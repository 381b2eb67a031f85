#include "sextant/torch/operators/device_call.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace sextant {
namespace {

TEST(TorchExecutor, CallsEachIndexOnceWithAWorkerOfItsOwn) {
  const Executor& executor = torch_executor();
  std::vector<std::atomic<int>> calls(1000), busy(executor.workers());
  executor.run(1000, [&](int64_t index, int worker) {
    EXPECT_EQ(busy.at(worker).fetch_add(1), 0);
    ++calls[index];
    --busy[worker];
  });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

TEST(TorchExecutor, RunsTasksAtTheSameTimeWhereLibtorchHasThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;
  bool met = true;  // each task waits for the other one
  torch_executor().run(2, [&](int64_t, int) {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    met = changed.wait_for(lock, std::chrono::seconds(20), [&] { return begun == 2; }) && met;
  });
  EXPECT_TRUE(met);
  at::set_num_threads(threads);
}

TEST(TorchExecutor, RunsNothingForNoTasks) {
  torch_executor().run(0, [](int64_t, int) { FAIL(); });
}

TEST(TorchExecutor, IsOneWorkerInsideAParallelRegion) {
  at::parallel_for(0, 2, 1, [](int64_t first, int64_t last) {
    for (; first < last; ++first) {
      if (!at::in_parallel_region()) continue;  // with one thread there is no region
      EXPECT_EQ(torch_executor().workers(), 1);
      int64_t sum = 0;
      torch_executor().run(10, [&](int64_t index, int worker) {
        EXPECT_EQ(worker, 0);
        sum += index;
      });
      EXPECT_EQ(sum, 45);
    }
  });
}

TEST(TorchExecutor, AnExceptionComesBack) {
  const auto run = [] {
    torch_executor().run(100, [](int64_t index, int) {
      if (index == 57) throw std::out_of_range("57");
    });
  };
  EXPECT_THROW(run(), std::out_of_range);
}

}  // namespace
}  // namespace sextant
