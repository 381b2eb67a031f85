#include "sextant/base/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    const auto pool = make_thread_pool(threads);
    EXPECT_EQ(pool->workers(), threads);
    for (const int64_t tasks : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      pool->run(tasks, [&](int64_t index, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        ++runs[static_cast<size_t>(index)];
      });
      EXPECT_TRUE(std::ranges::all_of(runs, [](const auto& n) { return n == 1; }));
    }
  }
}

TEST(ThreadPool, ThrowsTheErrorOfATaskAndServesOn) {
  const auto pool = make_thread_pool(3);
  const auto failing = [](int64_t index, int) {
    if (index == 7) throw std::runtime_error("seven");
  };
  EXPECT_THROW(pool->run(100, failing), std::runtime_error);
  std::atomic<int> runs = 0;
  pool->run(10, [&](int64_t, int) { ++runs; });
  EXPECT_EQ(runs, 10);
}

TEST(ThreadPool, ServesSeveralCallersInTurn) {
  const auto pool = make_thread_pool(2);
  std::atomic<int> runs = 0;
  {
    std::vector<std::jthread> callers;
    for (int n = 0; n < 4; ++n)
      callers.emplace_back([&] { pool->run(50, [&](int64_t, int) { ++runs; }); });
  }
  EXPECT_EQ(runs, 200);
}

TEST(ThreadPool, RefusesNoThreadAndTooMany) {
  for (const int threads : {-1, 0, 1000000})
    EXPECT_THAT([&] { make_thread_pool(threads); },
                ThrowsMessage<Error>(
                    HasSubstr("threads: expected 1 to 4096, but got " + std::to_string(threads))));
}

}  // namespace
}  // namespace sextant
