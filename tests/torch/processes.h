// Runs a function in several processes that a launcher seems to have started.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sextant::testing {

// How a process ended.
struct Ended {
  std::string message;  // what the function returned, or "Error: " and what it threw
  double seconds = 0;   // from the start of all processes to its message
  int signal = 0;       // that killed it, or 0
};

// A port of 127.0.0.1 that no program listens at.
int free_port();
// A socket that listens at a port of 127.0.0.1 and never answers.
int listen_at(int port);

// Forks `size` processes, with RANK, WORLD_SIZE, MASTER_ADDR and a free MASTER_PORT in their
// environment, and runs body() in each. The calling process must not have started threads.
std::vector<Ended> in_processes(int size, const std::function<std::string()>& body);

}  // namespace sextant::testing
