#include "sextant/lab/run/interruptions.h"

namespace sextant::lab {
namespace {

volatile std::sig_atomic_t interruptions = 0;
volatile std::sig_atomic_t first_signal = 0;

void count_interruption(int signal) {
  interruptions = interruptions + 1;
  note_interruption(signal);
}

}  // namespace

Interruptions::Interruptions() {
  interruptions = 0;
  struct sigaction action {};
  action.sa_handler = count_interruption;  // no SA_RESTART, so that poll() returns
  ::sigaction(SIGINT, &action, &old_int_);
  ::sigaction(SIGTERM, &action, &old_term_);
  ::sigaction(SIGHUP, &action, &old_hup_);
  if (old_hup_.sa_handler == SIG_IGN) ::sigaction(SIGHUP, &old_hup_, nullptr);
}

Interruptions::~Interruptions() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
  ::sigaction(SIGHUP, &old_hup_, nullptr);
}

int Interruptions::count() const { return interruptions; }

void note_interruption(int signal) {
  if (first_signal == 0) first_signal = signal;
}

int interrupted_status() { return 128 + (first_signal == 0 ? SIGINT : first_signal); }

}  // namespace sextant::lab
