#include "sextant/lab/run/interruptions.h"

namespace sextant::lab {
namespace {

volatile std::sig_atomic_t interruptions = 0;

void count_interruption(int) { interruptions = interruptions + 1; }

}  // namespace

Interruptions::Interruptions() {
  interruptions = 0;
  struct sigaction action {};
  action.sa_handler = count_interruption;  // no SA_RESTART, so that poll() returns
  ::sigaction(SIGINT, &action, &old_int_);
  ::sigaction(SIGTERM, &action, &old_term_);
}

Interruptions::~Interruptions() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

int Interruptions::count() const { return interruptions; }

}  // namespace sextant::lab
