// Trains a decoder step by step with AdamW, linear warm-up, a half cosine, and clipped gradients.
//
// A step depends only on (settings, batch of the step, weights, moments, memory). There is no other
// state, so an interrupted and resumed training gives bitwise the same result as an uninterrupted
// one.
//
// With a Group, its ranks train one model together. Each draws the batch of the step and computes
// the gradients of its share of the rows. Their sum over the ranks is the gradient of the mean loss
// of the whole batch, and each rank clips it and advances its own copy of weights and moments:
//
//   rank 0   rows 0..1 -- gradients --+              +-- clip, AdamW
//   rank 1   rows 2..3 -- gradients --+- all_reduce -+-- clip, AdamW   (the same bits)
//
// The number of ranks is no part of the state. Another number adds in another order: results then
// differ by rounding. All ranks call the functions of their trainers in the same order.
//
// A trainer computes on the decoder's device, which is no part of the state either. Batches are
// made on the CPU. A group needs decoders on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sextant/dense/adamw.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/training_state.h"
#include "sextant/lab/torch/batches.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/group.h"

namespace sextant::lab {

// The learning rate at 0 <= step < steps, relative to its peak.
double learning_rate_at(const TrainingOptions& options, int64_t step);

// Requests of a rank, which all ranks learn of in the same step.
struct Requests {
  bool stop = false, save = false;
};

class Trainer {
 public:
  // Keeps references to options and decoder. The decoders of all ranks of the group have the same
  // weights. Throws Error if the batch is no multiple of the ranks, or if a group of several has a
  // decoder on another device than the CPU.
  Trainer(const TrainingOptions& options, Batches batches, Decoder& decoder, int64_t memory = 0,
          Group group = Group());
  // Trains on text, see text_batches(). memory: positions; 0: windows at random positions.
  Trainer(const TrainingOptions& options, const Corpus& corpus, Decoder& decoder, uint64_t seed,
          int64_t memory = 0, Group group = Group());
  ~Trainer();

  int64_t step() const { return step_; }

  struct Step {
    double loss = 0;         // of the whole batch, in nats per token
    Requests requests = {};  // a request of any rank
  };
  // Does one step. If the loss or the gradient norm is not finite, it returns that value as the
  // loss and changes no state; further steps would not help. requests() is called once, before the
  // ranks exchange their gradients.
  Step advance(const std::function<Requests()>& requests);
  // Returns the loss.
  double advance() {
    return advance([] { return Requests(); }).loss;
  }

  // Weights, moments, memory and step as sections of a checkpoint, for any number of ranks: save()
  // collects the memory of all. restore() throws Error that names the mismatch, and then changes
  // nothing.
  void save(TrainingState& state) const;
  void restore(const TrainingState& state);

 private:
  struct Optimizer;  // moments of AdamW
  struct Sums;       // a step's results, of all ranks

  // This rank's rows of a tensor [batch, ...].
  at::Tensor own_rows(const at::Tensor& batch) const;
  at::Tensor all_rows(const at::Tensor& own) const;
  at::Tensor mean_loss(const Batch& batch, Memory& memory) const;
  // The gradients of the parameters, after backward(); undefined for unused ones.
  std::vector<at::Tensor> gradients() const;
  Sums sums(double loss, const Requests& requests) const;
  void apply(const std::vector<at::Tensor>& gradients, double norm);

  const TrainingOptions& options_;
  Batches batches_;
  Decoder& decoder_;
  int64_t step_ = 0;
  Memory memory_;  // of this rank's rows
  Group group_;
  std::unique_ptr<Optimizer> optimizer_;
};

// The updates of parameters by AdamW and the norm of their gradients: on the CPU by sextant/dense,
// which passes over memory once, on other devices by functions of libtorch.

// Tensors like the parameter.
struct Moments {
  at::Tensor first, second;
};

// gradient: contiguous, like the parameter `weight`.
void advance(const dense::AdamW& adamw, const at::Tensor& weight, const Moments& moments,
             const at::Tensor& gradient);

// The norm of all gradients as one vector; undefined ones are left out.
double norm_of(std::span<const at::Tensor> gradients);

}  // namespace sextant::lab
