#include "tests/torch/processes.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

namespace sextant::testing {
namespace {

void expect(bool held, const char* what) {
  if (!held) throw std::runtime_error(std::string("in_processes: ") + what + " failed");
}

std::string result_of(const std::function<std::string()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return std::string("Error: ") + error.what();
  }
}

[[noreturn]] void run_child(int rank, int to, const std::function<std::string()>& body) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  const std::string message = result_of(body);
  const bool written = write(to, message.data(), message.size()) >= 0;
  _exit(written ? 0 : 1);  // without the destructors of what the parent has
}

std::string read_all(int from) {
  std::string all;
  char buffer[4096];
  for (ssize_t count; (count = read(from, buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<size_t>(count));
  return all;
}

}  // namespace

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  expect(socket >= 0, "socket()");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  expect(bind(socket, any, size) == 0, "bind()");
  expect(getsockname(socket, any, &size) == 0, "getsockname()");
  close(socket);
  return ntohs(address.sin_port);
}

int listen_at(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  expect(socket >= 0, "socket()");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  expect(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind()");
  expect(listen(socket, 8) == 0, "listen()");
  return socket;
}

std::vector<Ended> in_processes(int size, const std::function<std::string()>& body) {
  setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(free_port()).c_str(), 1);
  setenv("OMP_NUM_THREADS", "1", 1);  // the processes share the cores
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::pair<pid_t, int>> children;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    expect(pipe(ends) == 0, "pipe()");
    const pid_t child = fork();
    expect(child >= 0, "fork()");
    if (child == 0) run_child(rank, ends[1], body);
    close(ends[1]);
    children.emplace_back(child, ends[0]);
  }
  std::vector<Ended> ended;
  for (const auto& [child, from] : children) {
    Ended one = {.message = read_all(from)};
    one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    close(from);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) one.signal = WTERMSIG(status);
    ended.push_back(one);
  }
  return ended;
}

}  // namespace sextant::testing
