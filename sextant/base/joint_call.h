// A call that the threads of a caller make together, such as the threads of an operation of ggml:
// each of n threads calls run() with its own number. The first one runs the call, and the tasks of
// its executor are shared by all that are there. No thread needs another one to arrive, so the
// calls may also follow each other in one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "sextant/base/executor.h"
#include "sextant/base/export.h"

namespace sextant {

class SEXTANT_API JointCall {
 public:
  JointCall();
  JointCall(const JointCall&) = delete;
  ~JointCall();

  // ith is in [0, nth), nth in [1, kMostThreads] (executor.h); Error otherwise. The n-th calls of
  // all threads are one call, of which `call` runs once; its work is complete when all have
  // returned. Rethrows its exception in each of them. nth may change when all have returned.
  void run(int ith, int nth, const std::function<void(const Executor&)>& call);

 private:
  class Team;

  bool lead(int ith, int nth, uint32_t number, const std::function<void(const Executor&)>& call);

  std::unique_ptr<Team> team_;
  std::mutex mutex_;
  // The numbers of the calls that have begun and that are done; one begins when all before it are.
  std::atomic<uint32_t> begun_ = 0, done_ = 0;
  // Guarded by mutex_: the exception of call error_of_; the largest nth so far; for each of so many
  // threads the last call that it has made, or that it had no part in.
  std::exception_ptr error_;
  uint32_t error_of_ = 0;
  int most_ = 0;
  std::unique_ptr<uint32_t[]> last_;  // [kMostThreads], or null before the first call
};

}  // namespace sextant
