#include "sextant/base/joint_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// f(ith) in each of n threads.
template <class F>
void in_threads(int n, F f) {
  std::vector<std::jthread> threads;
  for (int ith = 0; ith < n; ++ith) threads.emplace_back([f, ith] { f(ith); });
}

// Thread numbers change between calls, and no barrier keeps the calls apart.
TEST(JointCall, RunsEachTaskOfEachCallOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    JointCall joint;
    constexpr int kCalls = 300;
    std::vector<std::atomic<int>> runs(kCalls * 20);
    std::atomic<int> calls = 0;
    in_threads(threads, [&](int ith) {
      for (int n = 0; n < kCalls; ++n)
        joint.run(ith, threads, [&](const Executor& executor) {
          EXPECT_EQ(executor.workers(), threads);
          const int call = calls++;
          for (int half = 0; half < 2; ++half)
            executor.run(10, [&](int64_t index, int worker) {
              EXPECT_TRUE(worker >= 0 && worker < threads);
              ++runs[static_cast<size_t>(call * 20 + half * 10 + index)];
            });
        });
    });
    EXPECT_EQ(calls, kCalls);
    EXPECT_TRUE(std::ranges::all_of(runs, [](const auto& n) { return n == 1; }));
  }
}

// Tasks that overlap have different workers.
TEST(JointCall, GivesEachThreadAWorkerOfItsOwn) {
  JointCall joint;
  std::vector<std::atomic<int>> busy(4);
  in_threads(4, [&](int ith) {
    for (int n = 0; n < 100; ++n)
      joint.run(ith, 4, [&](const Executor& executor) {
        executor.run(50, [&](int64_t, int worker) {
          EXPECT_EQ(busy[static_cast<size_t>(worker)]++, 0);
          std::this_thread::yield();
          --busy[static_cast<size_t>(worker)];
        });
      });
  });
}

TEST(JointCall, NeedsNoThreadButOne) {
  JointCall joint;
  int calls = 0, tasks = 0;
  const auto call = [&](const Executor& executor) {
    ++calls;
    executor.run(5, [&](int64_t, int) { ++tasks; });
  };
  for (int n = 1; n <= 10; ++n) {
    for (const int ith : {2, 0, 1}) joint.run(ith, 3, call);
    EXPECT_EQ(calls, n);
    EXPECT_EQ(tasks, 5 * n);
  }
}

TEST(JointCall, TheNumberOfThreadsMayChange) {
  JointCall joint;
  std::atomic<int> tasks = 0;
  int expected = 0;
  for (const int threads : {4, 1, 2, 7, 1, 4, 4}) {
    in_threads(threads, [&](int ith) {
      joint.run(ith, threads, [&](const Executor& executor) {
        executor.run(11, [&](int64_t, int) { ++tasks; });
      });
    });
    expected += 11;
    EXPECT_EQ(tasks, expected) << threads;
  }
}

TEST(JointCall, AnErrorIsThatOfAllThreads) {
  JointCall joint;
  std::atomic<int> refused = 0;
  const auto count = [&](int ith, auto call) {
    try {
      joint.run(ith, 3, call);
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "seven");
      ++refused;
    }
  };
  in_threads(3, [&](int ith) {
    count(ith, [](const Executor& executor) {
      executor.run(20, [](int64_t index, int) {
        if (index == 7) throw std::runtime_error("seven");
      });
    });
  });
  EXPECT_EQ(refused, 3);
  in_threads(3, [&](int ith) { count(ith, [](const Executor&) {}); });
  EXPECT_EQ(refused, 3);
}

TEST(JointCall, RefusesThreadsThatAreNotAmongThem) {
  JointCall joint;
  const auto run = [&](int ith, int nth) {
    return [&joint, ith, nth] { joint.run(ith, nth, [](const Executor&) {}); };
  };
  EXPECT_THAT(run(2, 2), ThrowsMessage<Error>(HasSubstr("ith: expected 0 to 1, but got 2")));
  EXPECT_THAT(run(-1, 2), ThrowsMessage<Error>(HasSubstr("ith: expected 0 to 1, but got -1")));
  EXPECT_THAT(run(0, 0), ThrowsMessage<Error>(HasSubstr("nth: expected 1 to 4096, but got 0")));
  EXPECT_THAT(run(0, 5000), ThrowsMessage<Error>(HasSubstr("nth: expected 1 to 4096")));
}

}  // namespace
}  // namespace sextant
