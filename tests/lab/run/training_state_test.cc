#include "sextant/lab/run/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

constexpr const char* kOwner = R"({"arm":"rope-0"})";
constexpr size_t kChunk = size_t{1} << 20;

std::string noise(size_t bytes, uint64_t seed) {
  const CounterRandom random(seed, "noise");
  std::string text(bytes, '\0');
  for (size_t n = 0; n < bytes; ++n) text[n] = static_cast<char>(random.bits(n));
  return text;
}

TrainingState state_at(int64_t step, size_t bytes = 100) {
  return {
      .step = step,
      .belongs_to = kOwner,
      .sections = {
          {"weights", noise(bytes, static_cast<uint64_t>(step))}, {"empty", ""}, {"more", "x"}}};
}

std::set<std::string> names_in(const TemporaryFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::optional<TrainingState> newest(const TemporaryFolder& folder) {
  std::vector<std::string> remarks;
  return newest_training_state(folder.path(), kOwner, remarks);
}

TEST(TrainingState, ReadsWhatItWrites) {
  for (const size_t bytes : {size_t{0}, size_t{1}, kChunk - 500, kChunk, 3 * kChunk + 1}) {
    const TrainingState written = state_at(42, bytes);
    const TrainingState read = parse_training_state(training_state_file(written));
    EXPECT_EQ(read.step, 42);
    EXPECT_EQ(read.belongs_to, written.belongs_to);
    EXPECT_EQ(read.sections, written.sections);
  }
}

TEST(TrainingState, RefusesEveryTruncationAndEveryLongerFile) {
  const std::string file = training_state_file(state_at(3));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse_training_state(std::string_view(file).substr(0, size)), Error) << size;
  }
  EXPECT_THROW(parse_training_state(file + '\0'), Error);
}

TEST(TrainingState, RefusesEveryFlippedBitOfASmallFile) {
  const std::string good = training_state_file(state_at(3));
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string file = good;
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(parse_training_state(file), Error) << bit;
  }
}

TEST(TrainingState, RefusesRandomDamageOfALargeFile) {
  std::string file = training_state_file(state_at(3, 3 * kChunk));
  const CounterRandom random(1, "damage");
  for (uint64_t n = 0; n < 30; ++n) {
    char& byte = file[random.below(file.size(), 2 * n)];
    const char before = byte;
    byte = static_cast<char>(byte ^ (1 + random.below(255, 2 * n + 1)));
    EXPECT_THROW(parse_training_state(file), Error) << n;
    byte = before;
  }
  EXPECT_NO_THROW(parse_training_state(file));
}

// Chunks that are intact, checksums included, but belong to another step or another place.
TEST(TrainingState, RefusesChunksThatBelongElsewhere) {
  const std::string one = training_state_file(state_at(1, 3 * kChunk));
  const std::string two = training_state_file(state_at(2, 3 * kChunk));
  constexpr size_t kFirst = 64, kRecord = kChunk + 4;
  std::string mixed = two;
  mixed.replace(kFirst, kRecord, one, kFirst, kRecord);
  EXPECT_THAT([&] { parse_training_state(mixed); },
              ThrowsMessage<Error>(HasSubstr("chunk checksum at byte 1048640")));
  std::string swapped = one;
  swapped.replace(kFirst, kRecord, one, kFirst + kRecord, kRecord);
  EXPECT_THAT([&] { parse_training_state(swapped); },
              ThrowsMessage<Error>(HasSubstr("chunk checksum")));
}

TEST(TrainingState, SaysWhatItIsWhenItIsNone) {
  EXPECT_THAT([] { parse_training_state(""); },
              ThrowsMessage<Error>(HasSubstr("magic at byte 0: expected 8 bytes, but got 0")));
  EXPECT_THAT([] { parse_training_state(std::string(1000, 'x')); },
              ThrowsMessage<Error>(HasSubstr("magic at byte 0")));
}

TEST(Checkpoints, NewestIsReadAndTwoAreKept) {
  const TemporaryFolder folder;
  EXPECT_EQ(newest(folder), std::nullopt);
  for (const int64_t step : {10, 20, 30, 100}) save_training_state(state_at(step), folder.path());
  EXPECT_THAT(names_in(folder), ElementsAre("checkpoint-00000030.sxt", "checkpoint-00000100.sxt"));
  EXPECT_EQ(newest(folder)->step, 100);
}

TEST(Checkpoints, DamagedOnesAreLeftForTheOneBefore) {
  const TemporaryFolder folder;
  for (const int64_t step : {10, 20}) save_training_state(state_at(step), folder.path());
  const std::string whole = read_text(folder / "checkpoint-00000020.sxt");
  write_text(folder / "checkpoint-00000020.sxt", whole.substr(0, whole.size() - 1));
  std::vector<std::string> remarks;
  EXPECT_EQ(newest_training_state(folder.path(), kOwner, remarks)->step, 10);
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("checkpoint-00000020.sxt is not used: checkpoint: "
                                             "payload bytes")));
  write_text(folder / "checkpoint-00000010.sxt", "");
  EXPECT_EQ(newest(folder), std::nullopt);
}

TEST(Checkpoints, OfAnotherArmAreRefused) {
  const TemporaryFolder folder;
  save_training_state(state_at(10), folder.path());
  std::vector<std::string> remarks;
  EXPECT_THAT([&] { newest_training_state(folder.path(), R"({"arm":"alibi-0"})", remarks); },
              ThrowsMessage<Error>(HasSubstr(R"(but it belongs to {"arm":"rope-0"})")));
}

// Saves in a process whose files may not grow beyond `limit`. Returns the error message, or "" on
// success.
std::string save_with_limit(const TrainingState& state, const TemporaryFolder& folder,
                            rlim_t limit) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);  // write() then returns EFBIG after a short write
    const rlimit most{.rlim_cur = limit, .rlim_max = limit};
    ::setrlimit(RLIMIT_FSIZE, &most);
    std::string message;
    try {
      save_training_state(state, folder.path());
    } catch (const Error& error) {
      message = error.what();
    }
    [[maybe_unused]] const ssize_t said = ::write(ends[1], message.data(), message.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string message(4096, '\0');
  message.resize(static_cast<size_t>(::read(ends[0], message.data(), message.size())));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return message;
}

TEST(Checkpoints, AFullDiskLeavesTheOneBefore) {
  const TemporaryFolder folder;
  save_training_state(state_at(10, 5000), folder.path());
  const TrainingState next = state_at(20, 5000);
  const size_t needed = training_state_file(next).size();
  for (const size_t limit : {size_t{0}, size_t{1}, size_t{63}, needed / 2, needed - 1}) {
    EXPECT_THAT(save_with_limit(next, folder, limit),
                HasSubstr("checkpoint-00000020.sxt: cannot write: File too large"));
    EXPECT_THAT(names_in(folder), ElementsAre("checkpoint-00000010.sxt"));
    EXPECT_EQ(newest(folder)->step, 10);
  }
  EXPECT_THAT(save_with_limit(next, folder, needed), IsEmpty());
  EXPECT_EQ(newest(folder)->step, 20);
}

TEST(Checkpoints, KilledAtAnyMomentLeaveAWholeOne) {
  const TemporaryFolder folder;
  save_training_state(state_at(1, 4 * kChunk), folder.path());
  const CounterRandom random(1, "kill");
  for (uint64_t n = 0; n < 20; ++n) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int64_t step = 2;; ++step)
        save_training_state(state_at(step, 4 * kChunk), folder.path());
    }
    ::usleep(static_cast<useconds_t>(random.below(40'000, n)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::vector<std::string> remarks;
    const auto read = newest_training_state(folder.path(), kOwner, remarks);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->sections, state_at(read->step, 4 * kChunk).sections);
    EXPECT_THAT(remarks, IsEmpty());
  }
}

}  // namespace
}  // namespace sextant::lab
