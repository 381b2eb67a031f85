#include "sextant/lab/run/interruptions.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace sextant::lab {
namespace {

// The exit status of a process that runs `run`; the handlers of a test would stay.
int status_of(const std::function<int()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Interruptions, OfEachKindAreCountedAndGiveTheStatusOfTheFirst) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    EXPECT_EQ(status_of([=] {
                const Interruptions interruptions;
                ::raise(signal);
                ::raise(SIGINT);
                return interruptions.count() == 2 ? interrupted_status() : 1;
              }),
              128 + signal);
  }
  EXPECT_EQ(status_of([] { return interrupted_status(); }), 128 + SIGINT);
}

TEST(Interruptions, AHangupThatIsIgnoredStaysSo) {
  EXPECT_EQ(status_of([] {
              ::signal(SIGHUP, SIG_IGN);
              const Interruptions interruptions;
              ::raise(SIGHUP);
              return interruptions.count();
            }),
            0);
}

TEST(Interruptions, TheHandlersBeforeComeBack) {
  EXPECT_EQ(status_of([] {
              { const Interruptions interruptions; }
              ::raise(SIGHUP);
              return 0;
            }),
            -SIGHUP);
}

}  // namespace
}  // namespace sextant::lab
