#include "sextant/torch/group.h"

#include <exception>
#include <map>

#include "sextant/base/error.h"

#ifdef SEXTANT_C10D
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include "sextant/torch/group_connection.h"
#if __has_include(<torch/csrc/distributed/c10d/GroupRegistry.hpp>)
#define SEXTANT_NAMED_GROUPS
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#endif
#endif

namespace sextant {

#ifndef SEXTANT_C10D  // libtorch has no c10d: all groups are of one process

struct GroupConnection {};
struct RingTransfer::Work {
  std::vector<at::Tensor> received;
};
std::vector<at::Tensor> RingTransfer::wait() { return std::move(work_->received); }
void Group::all_reduce(const std::vector<at::Tensor>&) const {}
void Group::broadcast(const std::vector<at::Tensor>&, int64_t) const {}
RingTransfer Group::pass_on(const std::vector<at::Tensor>& tensors) const {
  return RingTransfer(std::make_unique<RingTransfer::Work>(RingTransfer::Work{tensors}));
}
Group Group::named(const std::string& name) {
  fail("group: " + name + ": expected a libtorch with torch.distributed, but it was built without");
}

#else

namespace {

using Works = std::vector<c10::intrusive_ptr<c10d::Work> >;

// The first line of an error of c10d, without the trace of the stack.
std::string reason(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(0, what.find('\n'));
}

// Runs a call of c10d, for which ranks wait for each other.
template <class Call>
auto run(const GroupConnection& connection, const std::string& expected, Call&& call) {
  const at::AutoDispatchBelowADInplaceOrView no_gradients;
  try {
    return call(*connection.group);
  } catch (const std::exception& error) {
    const std::string why = reason(error);  // before connections are closed
    if (connection.close) connection.close();
    fail("group: rank " + std::to_string(connection.group->getRank()) + " of " +
         std::to_string(connection.group->getSize()) + ": expected " + expected +
         ", but a rank has ended, failed or does not answer: " + why);
  }
}

void finish(const c10::intrusive_ptr<c10d::Work>& work, std::chrono::milliseconds timeout) {
  if (!work->wait(timeout)) fail("the call was aborted");
}

// Tensors of each type, as indices: each list is sent as one tensor.
std::vector<std::vector<size_t> > by_type(const std::vector<at::Tensor>& tensors) {
  std::map<std::pair<at::ScalarType, std::string>, std::vector<size_t> > lists;
  for (size_t n = 0; n < tensors.size(); ++n)
    if (tensors[n].numel() > 0)
      lists[{tensors[n].scalar_type(), tensors[n].device().str()}].push_back(n);
  std::vector<std::vector<size_t> > result;
  for (auto& [type, list] : lists) result.push_back(std::move(list));
  return result;
}

// Replaces the tensors by the result of `collective` for each type's elements in one vector.
template <class Collective>
void replace(const std::vector<at::Tensor>& tensors, Collective&& collective) {
  for (const std::vector<size_t>& list : by_type(tensors)) {
    std::vector<at::Tensor> flat;
    for (const size_t n : list) flat.push_back(tensors[n].detach().reshape({-1}));
    // A copy, as c10d needs contiguous tensors and others may share the memory of one.
    std::vector<at::Tensor> all = {at::cat(flat)};
    collective(all);
    int64_t first = 0;
    for (const size_t n : list) {
      const at::Tensor result = all[0].narrow(0, first, tensors[n].numel());
      tensors[n].detach().copy_(result.view(tensors[n].sizes()));
      first += tensors[n].numel();
    }
  }
}

std::string sum_of_all(const Group& group) {
  return "the sums of " + std::to_string(group.size()) + " ranks";
}

}  // namespace

struct RingTransfer::Work {
  std::vector<at::Tensor> sent, received;
  Works works;
  std::shared_ptr<const GroupConnection> connection;
  std::string expected;
};

std::vector<at::Tensor> RingTransfer::wait() {
  if (work_->connection)
    run(*work_->connection, work_->expected, [&](c10d::ProcessGroup&) {
      for (const auto& work : work_->works) finish(work, work_->connection->exchange);
    });
  work_->works.clear();
  return std::move(work_->received);
}

void Group::all_reduce(const std::vector<at::Tensor>& tensors) const {
  if (connection_)
    run(*connection_, sum_of_all(*this), [&](c10d::ProcessGroup& group) {
      replace(tensors, [&](std::vector<at::Tensor>& all) {
        finish(group.allreduce(all), std::chrono::milliseconds(0));
      });
    });
}

void Group::broadcast(const std::vector<at::Tensor>& tensors, int64_t from) const {
  if (from < 0 || from >= size_)
    fail("group: broadcast: from: expected a rank from 0 to " + std::to_string(size_ - 1) +
         ", but got " + std::to_string(from));
  c10d::BroadcastOptions options;
  options.rootRank = from;
  if (connection_)
    run(*connection_, "tensors of rank " + std::to_string(from), [&](c10d::ProcessGroup& group) {
      replace(tensors, [&](std::vector<at::Tensor>& all) {
        finish(group.broadcast(all, options), std::chrono::milliseconds(0));
      });
    });
}

RingTransfer Group::pass_on(const std::vector<at::Tensor>& tensors) const {
  auto work = std::make_unique<RingTransfer::Work>();
  if (!connection_) {
    work->received = tensors;
    return RingTransfer(std::move(work));
  }
  work->connection = connection_;
  work->expected = "tensors from rank " + std::to_string(previous()) + " and rank " +
                   std::to_string(next()) + " to take those of this one";
  run(*connection_, work->expected, [&](c10d::ProcessGroup& group) {
    const auto send = [&](size_t n) {
      std::vector<at::Tensor> one = {work->sent[n]};
      work->works.push_back(group.send(one, static_cast<int>(next()), static_cast<int>(n)));
    };
    const auto receive = [&](size_t n) {
      std::vector<at::Tensor> one = {work->received[n]};
      work->works.push_back(group.recv(one, static_cast<int>(previous()), static_cast<int>(n)));
    };
    for (size_t n = 0; n < tensors.size(); ++n) {
      work->sent.push_back(tensors[n].detach().contiguous());
      work->received.push_back(at::empty_like(work->sent[n]));
      if (tensors[n].numel() == 0) continue;
      // A backend may run calls in their order (NCCL): if all ranks sent first, none would receive.
      if (rank_ % 2 == 0) {
        send(n);
        receive(n);
      } else {
        receive(n);
        send(n);
      }
    }
  });
  return RingTransfer(std::move(work));
}

Group Group::named(const std::string& name) {
#ifdef SEXTANT_NAMED_GROUPS
  auto connection = std::make_shared<GroupConnection>();
  try {
    connection->group = c10d::resolve_process_group(name);
  } catch (const std::exception& error) {
    fail("group: expected the name of a process group of this process, but got \"" + name +
         "\": " + reason(error));
  }
  const int64_t rank = connection->group->getRank(), size = connection->group->getSize();
  if (size == 1) return Group();
  return Group(rank, size, std::move(connection));
#else
  fail("group: \"" + name +
       "\": expected torch 2.1 or later, whose process groups have names, but this library was "
       "built for an older one");
#endif
}

#endif  // SEXTANT_C10D

bool Group::has_names() {
#ifdef SEXTANT_NAMED_GROUPS
  return true;
#else
  return false;
#endif
}

RingTransfer::RingTransfer(std::unique_ptr<Work> work) : work_(std::move(work)) {}
RingTransfer::RingTransfer(RingTransfer&&) noexcept = default;
RingTransfer& RingTransfer::operator=(RingTransfer&&) noexcept = default;
RingTransfer::~RingTransfer() = default;

}  // namespace sextant
