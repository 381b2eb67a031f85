// One model trained by several processes on 127.0.0.1, against the same training in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/lab/torch/trainer.h"
#include "tests/lab/laboratory.h"
#include "tests/torch/processes.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using sextant::testing::Ended;
using sextant::testing::in_processes;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr int kSteps = 20;

struct Subject {
  std::string method;
  int64_t memory = 0;
  bool masked = false;
};

Settings settings_of(const Subject& subject) {
  Settings settings = tiny_settings();
  settings.model = model_of(settings, subject.masked ? Task::kMasked : Task::kText);
  return settings;
}

// One rank: a decoder and its trainer. Made in a forked process only, as tensors start threads.
struct Student {
  explicit Student(const Subject& subject)
      : settings(settings_of(subject)),
        corpus(split_corpus(synthetic_documents(40, 500), 0.1)),
        decoder(settings.model,
                make_method(subject.method, model_shape(settings.model, settings.training.length),
                            json::object()),
                /*seed=*/0),
        trainer(settings.training,
                subject.masked ? masked_batches(settings.training, corpus, 0)
                               : text_batches(settings.training, corpus, 0, subject.memory > 0),
                decoder, subject.memory, group) {}

  std::string state() const {
    TrainingState state;
    trainer.save(state);
    return training_state_file(state);
  }

  Settings settings;
  Corpus corpus;
  Group group = Group::from_environment();
  Decoder decoder;
  Trainer trainer;
};

// The losses of the first steps and a hash of the weights, moments and memory after them.
std::vector<Ended> trained(int ranks, const Subject& subject) {
  return in_processes(ranks, [&] {
    Student student(subject);
    json losses = json::array();
    for (int step = 0; step < kSteps; ++step) losses.push_back(student.trainer.advance());
    const size_t state = std::hash<std::string>()(student.state());
    return json{{"losses", losses}, {"state", state}}.dump();
  });
}

void expect_close(const Ended& actual, const Ended& expected) {
  ASSERT_TRUE(actual.message.starts_with('{')) << actual.message;
  ASSERT_TRUE(expected.message.starts_with('{')) << expected.message;
  const json a = json::parse(actual.message), b = json::parse(expected.message);
  for (int step = 0; step < kSteps; ++step) {
    const double loss = b.at("losses")[step].get<double>();
    EXPECT_NEAR(a.at("losses")[step].get<double>(), loss, 1e-6 * loss) << "step " << step;
  }
}

TEST(GroupTraining, HasTheLossesOfOneProcessAndTheSameBitsAgain) {
  for (const Subject& subject :
       {Subject{"t5"}, Subject{"transformer-xl", /*memory=*/24}, Subject{"rope", 0, true}}) {
    SCOPED_TRACE(subject.method);
    const Ended one = trained(1, subject)[0];
    for (const int ranks : {2, 4}) {
      const std::vector<Ended> together = trained(ranks, subject);
      expect_close(together[0], one);
      EXPECT_THAT(together, Each(Field(&Ended::message, together[0].message)));
      EXPECT_EQ(trained(ranks, subject)[0].message, together[0].message);
    }
  }
}

// A checkpoint has the memory of all rows. Two ranks continue it with the same bits, one with the
// same losses.
TEST(GroupTraining, GoesOnFromACheckpointWithAnyNumberOfProcesses) {
  const Subject subject{"transformer-xl", /*memory=*/24};
  const TemporaryFolder folder;
  const auto file = (folder / "state").string();
  const auto whole = in_processes(2, [&] {
    Student student(subject);
    for (int step = 0; step < 5; ++step) student.trainer.advance();
    const std::string state = student.state();
    if (student.group.rank() == 0) write_text(file, state);
    return json(student.trainer.advance()).dump();
  });
  const auto next_loss = [&](int ranks) {
    const auto ended = in_processes(ranks, [&] {
      Student student(subject);
      student.trainer.restore(parse_training_state(read_text(file)));
      return json(student.trainer.advance()).dump();
    });
    EXPECT_THAT(ended, Each(Field(&Ended::message, ended[0].message)));
    return ended[0].message;
  };
  EXPECT_EQ(next_loss(2), whole[0].message);
  const double loss = std::stod(whole[0].message);
  for (const int ranks : {1, 4}) EXPECT_NEAR(std::stod(next_loss(ranks)), loss, 1e-6 * loss);
}

TEST(GroupTraining, ALossThatIsNoNumberOnOneRankEndsTheStepOnAll) {
  const auto ended = in_processes(2, [] {
    Student student({"t5"});
    const std::string before = student.state();
    if (student.group.rank() == 1) {
      const auto nan = std::numeric_limits<double>::quiet_NaN();
      student.decoder.parameters()[0].value.detach().fill_(nan);
    }
    const double loss = student.trainer.advance();
    const bool changed = student.group.rank() == 0 && student.state() != before;
    return std::string(std::isnan(loss) && student.trainer.step() == 0 && !changed ? "no step"
                                                                                   : "a step");
  });
  EXPECT_THAT(ended, Each(Field(&Ended::message, "no step")));
}

TEST(GroupTraining, ARequestOfOneRankIsKnownToAllInTheSameStep) {
  const auto ended = in_processes(2, [] {
    Student student({"none"});
    Trainer::Step step;
    while (!step.requests.stop) {
      step = student.trainer.advance([&] {
        return Requests{.stop = student.group.rank() == 1 && student.trainer.step() == 3};
      });
    }
    return std::to_string(student.trainer.step()) + (step.requests.save ? " save" : "");
  });
  EXPECT_THAT(ended, Each(Field(&Ended::message, "4")));
}

TEST(GroupTraining, ABatchThatCannotBeDividedIsRefused) {
  const auto ended = in_processes(3, [] {
    Student student({"none"});
    return std::string("trains");
  });
  EXPECT_THAT(ended, Each(Field(&Ended::message,
                                "Error: training: batch: expected a multiple of 3, the number of "
                                "processes, but got 4")));
}

TEST(GroupTraining, AKilledRankIsAnErrorInTheOthers) {
  const auto ended = in_processes(2, [] {
    Student student({"none"});
    for (int step = 0; step < 10; ++step) {
      if (step == 3 && student.group.rank() == 1) kill(getpid(), SIGKILL);
      student.trainer.advance();
    }
    return std::string("trains");
  });
  EXPECT_EQ(ended[1].signal, SIGKILL);
  EXPECT_THAT(ended[0].message, AllOf(HasSubstr("Error: group: rank 0 of 2"),
                                      HasSubstr("a rank has ended, failed or does not answer")));
  EXPECT_LE(ended[0].seconds, 30);
}

}  // namespace
}  // namespace sextant::lab
