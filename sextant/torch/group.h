// A group of processes that compute together: torch.distributed's process group (c10d) for C++.
//
//   const Group group = Group::from_environment();  // under torchrun or srun; or of one process
//   group.all_reduce(gradients);                    // sums over the ranks
//   RingTransfer transfer = group.pass_on({k, v});  // to the next rank, in the background
//   ...
//   const std::vector<at::Tensor> received = transfer.wait();  // from the previous rank
//
// All ranks must make the same calls in the same order, with tensors of the same types and shapes.
// Results are the same bits for each run with the same number of ranks, and on all ranks.
//
// A lost rank: when a process ends or is killed, its system closes its connections, and the calls
// of the ranks that wait for it throw at once. These close their own connections, so that all ranks
// throw. Timeouts::exchange may thus be long, as a rank may compute for long between two calls; it
// is needed only if a machine vanishes without closing connections.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sextant {

struct GroupConnection;

// Tensors on their way around the ring.
class RingTransfer {
 public:
  struct Work;
  explicit RingTransfer(std::unique_ptr<Work> work);
  RingTransfer(RingTransfer&&) noexcept;
  RingTransfer& operator=(RingTransfer&&) noexcept;
  ~RingTransfer();

  // The tensors of the previous rank, when they and those that were sent have arrived. Once only.
  std::vector<at::Tensor> wait();

 private:
  std::unique_ptr<Work> work_;
};

class Group {
 public:
  // The longest that ranks wait for each other. The variables SEXTANT_CONNECT_SECONDS and
  // SEXTANT_EXCHANGE_SECONDS of the environment override these numbers.
  struct Timeouts {
    std::chrono::seconds connect{30};        // until all ranks have started and are connected
    std::chrono::seconds exchange{30 * 60};  // in a call, for ranks that still compute
  };

  // A group of this process alone.
  Group() = default;

  // The group of the processes that torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) or srun
  // (SLURM_PROCID, SLURM_NTASKS, and the same MASTER_ADDR and MASTER_PORT) has started, over Gloo;
  // this process alone if there are neither, or if the size is 1. Rank 0 listens at MASTER_PORT; if
  // torchrun's agent does (TORCHELASTIC_USE_AGENT_STORE), at the port after it. GLOO_SOCKET_IFNAME
  // names the network interface, by default that of the host's name.
  //
  // Throws Error that names the variable if one is missing or out of range, if ranks do not connect
  // in time, and if the build has no Gloo.
  static Group from_environment() { return from_environment(Timeouts()); }
  static Group from_environment(const Timeouts& timeouts);

  // The group that Python has registered by this name (ProcessGroup.group_name), with any backend;
  // torch 2.1 or later. Its timeout is that of init_process_group() or new_group(). Throws Error if
  // there is none.
  static Group named(const std::string& name);
  static bool has_names();  // whether this library's torch has such groups

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  int64_t next() const { return (rank_ + 1) % size_; }
  int64_t previous() const { return (rank_ + size_ - 1) % size_; }

  // The calls throw Error that says what happened, if another rank is lost. None records gradients.
  //
  // Sums each tensor over the ranks, in place. Tensors of the same type are sent at once.
  void all_reduce(const std::vector<at::Tensor>& tensors) const;
  // Overwrites each tensor with that of rank `from`.
  void broadcast(const std::vector<at::Tensor>& tensors, int64_t from = 0) const;
  // Sends the tensors to the next rank and receives as many from the previous one. The tensors must
  // not be changed before the transfer has ended.
  RingTransfer pass_on(const std::vector<at::Tensor>& tensors) const;

 private:
  Group(int64_t rank, int64_t size, std::shared_ptr<const GroupConnection> connection)
      : rank_(rank), size_(size), connection_(std::move(connection)) {}

  int64_t rank_ = 0, size_ = 1;
  std::shared_ptr<const GroupConnection> connection_;  // null: of one process
};

}  // namespace sextant
