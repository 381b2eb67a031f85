// Group::from_environment(): processes that a launcher has started meet at a TCP store of rank 0
// and connect to each other by Gloo.
#include <chrono>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/launched_rank.h"
#include "sextant/torch/group.h"

#ifdef SEXTANT_GLOO
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "sextant/torch/group_connection.h"
#endif

namespace sextant {
namespace {

#ifdef SEXTANT_GLOO

std::chrono::seconds seconds(const char* name, std::chrono::seconds otherwise) {
  if (!environment_value(name)) return otherwise;
  return std::chrono::seconds(
      environment_number(name, 1, std::numeric_limits<int>::max(), " seconds"));
}

using Device = std::shared_ptr<::gloo::transport::Device>;

Device device(const std::string& address) {
  using c10d::ProcessGroupGloo;
  if (const auto interface = environment_value("GLOO_SOCKET_IFNAME"))
    return ProcessGroupGloo::createDeviceForInterface(*interface);
  // All ranks are then on this machine, whose name may belong to no interface.
  if (address == "localhost" || address.starts_with("127."))
    return ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return ProcessGroupGloo::createDefaultDevice();
}

class Gloo final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void wait_at_most(std::chrono::milliseconds timeout) {
    for (const auto& context : contexts_) context->setTimeout(timeout);
  }
  void close() {
    for (const auto& context : contexts_) context->closeConnections();
  }
};

// The port at which rank 0 listens. torchrun's agent may listen at MASTER_PORT itself, with a store
// of its own torch: 1.13 of libtorch waits for an answer of 2.15's for ever, as their protocols
// differ. Rank 0 then listens beside it.
uint16_t meeting_port() {
  const int64_t port =
      environment_number("MASTER_PORT", 1, 65535, ", the port at which rank 0 listens");
  const bool taken = environment_value("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!taken) return static_cast<uint16_t>(port);
  return static_cast<uint16_t>(port == 65535 ? port - 1 : port + 1);
}

c10::intrusive_ptr<Gloo> connected(const LaunchedRank& own, const Group::Timeouts& timeouts) {
  const std::optional<std::string> address = environment_value("MASTER_ADDR");
  if (!address) fail("group: MASTER_ADDR: expected the host of rank 0, but it is not set");
  c10d::TCPStoreOptions meeting;
  meeting.port = meeting_port();
  meeting.isServer = own.rank == 0;
  meeting.numWorkers = static_cast<size_t>(own.size);
  meeting.timeout = timeouts.connect;
  auto options = c10d::ProcessGroupGloo::Options::create(timeouts.connect);
  try {
    // Processes that torchrun starts again must not meet those of the attempt before.
    const std::string attempt = environment_value("TORCHELASTIC_RESTART_COUNT").value_or("0");
    const auto store = c10::make_intrusive<c10d::PrefixStore>(
        "sextant/" + attempt, c10::make_intrusive<c10d::TCPStore>(*address, meeting));
    options->devices.push_back(device(*address));
    auto gloo = c10::make_intrusive<Gloo>(store, static_cast<int>(own.rank),
                                          static_cast<int>(own.size), options);
    gloo->wait_at_most(timeouts.exchange);
    return gloo;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    fail("group: rank " + std::to_string(own.rank) + ": expected " + std::to_string(own.size) +
         " ranks to meet at " + *address + ":" + std::to_string(meeting.port) + " within " +
         std::to_string(timeouts.connect.count()) +
         " s (SEXTANT_CONNECT_SECONDS), but got: " + what.substr(0, what.find('\n')));
  }
}

#endif

}  // namespace

Group Group::from_environment([[maybe_unused]] const Timeouts& given) {
  const LaunchedRank own = launched_rank();
  if (own.size == 1) return Group();
#ifdef SEXTANT_GLOO
  const Timeouts timeouts = {.connect = seconds("SEXTANT_CONNECT_SECONDS", given.connect),
                             .exchange = seconds("SEXTANT_EXCHANGE_SECONDS", given.exchange)};
  const auto gloo = connected(own, timeouts);
  auto connection = std::make_shared<GroupConnection>();
  connection->group = gloo;
  connection->exchange = timeouts.exchange;
  connection->close = [gloo] { gloo->close(); };
  return Group(own.rank, own.size, std::move(connection));
#else
  fail("group: expected a build with the headers of Gloo (libgloo-dev beside libtorch-dev) for " +
       std::to_string(own.size) +
       " processes, but this one has none: with Python's torch, make the group in Python");
#endif
}

}  // namespace sextant
