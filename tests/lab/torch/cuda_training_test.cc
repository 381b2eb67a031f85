// Trainings and tests on a CUDA device, beside the same ones on the CPU. The device is a stand-in
// (tests/torch/stand_in_cuda), whose kernels are slow, so models and texts are tiny.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/torch/device.h"
#include "sextant/lab/torch/evaluate.h"
#include "sextant/lab/torch/evaluate_model.h"
#include "sextant/lab/torch/run_arm.h"
#include "sextant/lab/torch/trainer.h"
#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

// Losses are sums in other orders; after some steps of a rate of 0.02 they are this far apart.
constexpr double kBound = 1e-4;

const Corpus& corpus() {
  static const Corpus corpus = split_corpus(synthetic_documents(40, 500), 0.1);
  return corpus;
}

struct Subject {
  std::string method;
  int64_t memory = 0;
  Task task = Task::kText;
  bool two_streams = false;
  Norm norm = Norm::kLayerNorm;
  Activation activation = Activation::kSquaredRelu;
  std::string options = "{}";

  friend void PrintTo(const Subject& subject, std::ostream* out) {
    *out << subject.method << ' ' << name(subject.task) << ", memory " << subject.memory;
  }
};

Settings settings_of(const Subject& subject) {
  Settings settings = tiny_settings_with_pairs(4);
  settings.model.norm = subject.norm;
  settings.model.activation = subject.activation;
  if (subject.task == Task::kMasked || subject.task == Task::kDirection)
    settings.objective = Objective::kMasked;
  return settings;
}

Arm arm_of(const Subject& subject) {
  return {.label = subject.method,
          .method = subject.method,
          .options = subject.options,
          .memory = subject.memory,
          .task = subject.task,
          .two_streams = subject.two_streams};
}

Batches batches_of(const Subject& subject, const TrainingOptions& training) {
  if (!is_on_text(subject.task)) return small_batches(subject.task, training, 0);
  if (subject.two_streams) return permuted_batches(training, corpus(), 0);
  if (subject.task == Task::kMasked) return masked_batches(training, corpus(), 0);
  return text_batches(training, corpus(), 0, subject.memory > 0);
}

// A decoder and its trainer on a device.
struct Student {
  Student(const Subject& subject, c10::Device device)
      : settings(settings_of(subject)),
        training(training_of(settings, subject.task)),
        decoder(model_of(settings, arm_of(subject)), method_of(arm_of(subject), settings), 0),
        trainer(training, batches_of(subject, training), moved(decoder, device), subject.memory) {}

  static Decoder& moved(Decoder& decoder, c10::Device device) {
    decoder.move_to(device);
    return decoder;
  }
  TrainingState state() const {
    TrainingState state;
    trainer.save(state);
    return state;
  }

  Settings settings;
  TrainingOptions training;
  Decoder decoder;
  Trainer trainer;
};

const c10::Device kCudaDevice(at::kCUDA, 0);

class OnCuda : public ::testing::TestWithParam<Subject> {};

INSTANTIATE_TEST_SUITE_P(
    Subjects, OnCuda,
    ::testing::Values(Subject{"rope"}, Subject{"t5", 0, Task::kText, false, Norm::kRmsNorm},
                      Subject{"shaw", 0, Task::kText, false, Norm::kLayerNorm, Activation::kGelu},
                      Subject{"sinusoidal", 0, Task::kText, false, Norm::kRmsNorm,
                              Activation::kSwiGlu},
                      Subject{"fox"}, Subject{"transformer-xl", 24}, Subject{"alibi", 16},
                      Subject{"rope", 0, Task::kPairs}, Subject{"t5", 0, Task::kMasked},
                      Subject{"tener", 0, Task::kDirection},
                      Subject{"xlnet", 0, Task::kMasked, /*two_streams=*/true}));

TEST_P(OnCuda, LossesAreThoseOfTheCpu) {
  Student cpu(GetParam(), at::kCPU), cuda(GetParam(), kCudaDevice);
  EXPECT_EQ(cuda.state().sections, cpu.state().sections) << "the same initial weights";
  double first = 0, last = 0;
  for (int step = 0; step < 4; ++step) {
    last = cpu.trainer.advance();
    if (step == 0) first = last;
    EXPECT_NEAR(cuda.trainer.advance(), last, kBound) << "step " << step;
  }
  EXPECT_NE(first, last);
  EXPECT_EQ(cuda.decoder.device(), kCudaDevice);
  for (const NamedParameter& parameter : cuda.decoder.parameters())
    EXPECT_TRUE(parameter.value.is_cuda() && parameter.value.is_leaf()) << parameter.name;
}

TEST_P(OnCuda, ACheckpointGoesOnOnTheOtherDevice) {
  Student cpu(GetParam(), at::kCPU);
  for (int step = 0; step < 2; ++step) cpu.trainer.advance();
  Student cuda(GetParam(), kCudaDevice);
  cuda.trainer.restore(parse_training_state(training_state_file(cpu.state())));
  EXPECT_EQ(cuda.state().sections, cpu.state().sections);
  EXPECT_EQ(cuda.trainer.step(), 2);
  EXPECT_NEAR(cuda.trainer.advance(), cpu.trainer.advance(), kBound);

  Student back(GetParam(), at::kCPU);
  back.trainer.restore(parse_training_state(training_state_file(cuda.state())));
  EXPECT_EQ(back.state().sections, cuda.state().sections);
  EXPECT_NEAR(back.trainer.advance(), cpu.trainer.advance(), kBound);
}

TEST_P(OnCuda, TestsHaveTheResultsOfTheCpu) {
  const Subject subject = GetParam();
  Student student(subject, at::kCPU);
  for (int step = 0; step < 4; ++step) student.trainer.advance();
  const auto tested = [&](c10::Device device) {
    student.decoder.move_to(device);
    const TestOptions& test = student.settings.test;
    std::vector<double> numbers;
    if (!is_on_text(subject.task)) {
      for (const AtDistance& at : accuracies(student.decoder, subject.task,
                                             student.settings.retrieval, [](int64_t, int64_t) {}))
        numbers.push_back(at.accuracy.value);
      return numbers;
    }
    const Evaluation found =
        evaluate(student.decoder, test_blocks(corpus(), test.longest(), 2), test,
                 survey_scoring(16, subject.memory, subject.task == Task::kMasked), [](int64_t) {});
    for (const AtLength& at : found.lengths) {
      numbers.push_back(at.loss.value);
      numbers.push_back(at.sliding.value);
    }
    return numbers;
  };
  const std::vector<double> cpu = tested(at::kCPU), cuda = tested(kCudaDevice);
  ASSERT_EQ(cpu.size(), cuda.size());
  for (size_t n = 0; n < cpu.size(); ++n) EXPECT_NEAR(cuda[n], cpu[n], kBound) << n;
}

TEST(EveryMethod, TrainsOnCudaAsOnTheCpu) {
  for (const MethodInfo& method : methods()) {
    Subject subject{method.name};
    // A grid with a place for each token.
    if (method.grid_option)
      subject.options = "{\"" + std::string(method.grid_option) + "\": [64, 64]}";
    Student cpu(subject, at::kCPU), cuda(subject, kCudaDevice);
    for (int step = 0; step < 2; ++step)
      EXPECT_NEAR(cuda.trainer.advance(), cpu.trainer.advance(), kBound) << method.name;
  }
}

Settings few_steps(const std::string& device) {
  Settings settings = tiny_settings();
  settings.training.bytes = 10 * 4 * 16;
  settings.test.blocks = 2;
  settings.device = device;
  return settings;
}

ArmResult result_of(const TemporaryFolder& folder, const Settings& settings,
                    const Watch& watch = {}) {
  const Arm arm = arm_of({.method = "t5"});
  const auto directory = prepare_arm(folder, arm, settings);
  EXPECT_EQ(run_arm(directory, watch), Ending::kDone);
  return read_json(directory / kResultFile).get<ArmResult>();
}

TEST(ArmOnCuda, HasTheNumbersOfTheCpuAndSaysItsDevice) {
  const TemporaryFolder on_cpu, on_cuda, asked;
  const ArmResult cpu = result_of(on_cpu, few_steps("cpu"));
  const ArmResult cuda = result_of(on_cuda, few_steps("cuda"));
  EXPECT_THAT(cpu.machine, ::testing::Not(HasSubstr("cuda")));
  EXPECT_THAT(cuda.machine, HasSubstr(", cuda, libtorch"));
  ASSERT_EQ(cuda.lengths.size(), cpu.lengths.size());
  for (size_t n = 0; n < cpu.lengths.size(); ++n)
    EXPECT_NEAR(cuda.lengths[n].loss.value, cpu.lengths[n].loss.value, kBound);
  ASSERT_EQ(cuda.attention.size(), cpu.attention.size());
  EXPECT_NEAR(cuda.attention[0].entropy, cpu.attention[0].entropy, kBound);
  EXPECT_EQ(cuda.pictures.distances, cpu.pictures.distances);

  // The device of a worker replaces that of the settings.
  const Watch watch{.device = "cuda"};
  EXPECT_EQ(result_of(asked, few_steps("cpu"), watch).machine, cuda.machine);

  EvaluationRequest request{
      .model = on_cuda / "arms/t5-0", .text = {on_cuda / "text"}, .lengths = {16, 32}, .blocks = 2};
  const ModelEvaluation there = evaluate_model(request, [](int64_t, int64_t) {});
  request.device = "cuda:0";
  const ModelEvaluation here = evaluate_model(request, [](int64_t, int64_t) {});
  for (size_t n = 0; n < 2; ++n)
    EXPECT_NEAR(here.lengths[n].loss.value, there.lengths[n].loss.value, kBound);
}

TEST(ArmOnCuda, GoesOnFromACheckpointOfTheCpu) {
  const TemporaryFolder whole, divided;
  const ArmResult cpu = result_of(whole, few_steps("cpu"));
  const auto directory = prepare_arm(divided, arm_of({.method = "t5"}), few_steps("cpu"));
  volatile std::sig_atomic_t stop = 1;
  EXPECT_EQ(run_arm(directory, {.stop = &stop}), Ending::kStopped);  // after the first step
  EXPECT_EQ(run_arm(directory, {.device = "cuda"}), Ending::kDone);
  const auto result = read_json(directory / kResultFile).get<ArmResult>();
  EXPECT_THAT(result.machine, HasSubstr(", cuda, libtorch"));
  EXPECT_NEAR(result.lengths[0].loss.value, cpu.lengths[0].loss.value, kBound);
}

TEST(Devices, AreNamedWithTheReasonIfOneIsNotThere) {
  EXPECT_EQ(device_named("cpu"), c10::Device(at::kCPU));
  EXPECT_EQ(device_named("cuda"), kCudaDevice);
  EXPECT_THAT([] { device_named("cuda:3"); },
              ThrowsMessage<Error>("device: expected a number below 1, the number of GPUs here, "
                                   "but got cuda:3"));
  EXPECT_THAT([] { device_named("mps"); },
              ThrowsMessage<Error>("device: expected cpu or cuda, but got mps"));
  EXPECT_THAT(
      [] { check_device_of(arm_of({.method = "own.py:Mine"}), "cuda"); },
      ThrowsMessage<Error>(StartsWith("own.py:Mine: device: expected cpu for an encoding")));
}

TEST(Devices, ACacheIsThatOfADecoderOnTheCpu) {
  const Student student({.method = "rope"}, kCudaDevice);
  DecoderCache cache = student.decoder.new_cache();
  const std::vector<int64_t> sequence = {cache.add()};
  const at::Tensor token = at::zeros({1, 1}, at::kLong);
  EXPECT_THAT(
      [&] { student.decoder.logits(token, cache, sequence); },
      ThrowsMessage<Error>("decoder: cache: expected a decoder on the CPU, but it is on cuda:0"));
}

}  // namespace
}  // namespace sextant::lab
