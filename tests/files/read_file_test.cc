#include "sextant/files/read_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <string>

#include "sextant/base/error.h"
#include "tests/lab/temporary_folder.h"

namespace sextant {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

class ReadFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) const {
    write_text(folder_ / "file", text);
    return folder_ / "file";
  }
  static void refuses(const std::filesystem::path& path, const std::string& reason,
                      uint64_t most = memory_bytes()) {
    const auto says = ThrowsMessage<Error>("read " + path.string() + ": " + reason);
    EXPECT_THAT([&] { read_file(path, most); }, says);
    if (reason.find("at most") != std::string::npos) return;
    EXPECT_THAT([&] { read_start(path, most); }, says);
  }

  TemporaryFolder folder_;
};

TEST_F(ReadFile, GivesAllBytesUpToTheLimit) {
  const std::string text(200'000, 'x');
  EXPECT_EQ(read_file(write("")), "");
  EXPECT_EQ(read_file(write(std::string("a\0b", 3))), std::string("a\0b", 3));
  EXPECT_EQ(read_file(write(text), text.size()), text);
  refuses(write(text), "expected at most 199999 bytes, but got 200000", text.size() - 1);
  EXPECT_EQ(read_start(write(text), 100'000), text.substr(0, 100'000));
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:")) << "its size is said to be 0";
}

TEST_F(ReadFile, RefusesWhatIsNoFileBeforeReading) {
  refuses("/dev/zero", "expected a file, but got a device");
  refuses("/dev/null", "expected a file, but got a device");
  refuses(folder_.path(), "expected a file, but got a folder");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0666), 0);
  refuses(folder_ / "pipe", "expected a file, but got a named pipe");
  std::filesystem::create_symlink("loop", folder_ / "loop");
  refuses(folder_ / "loop", "cannot open it: Too many levels of symbolic links");
  refuses(folder_ / "none", "cannot open it: No such file or directory");
  refuses(folder_ / std::string(300, 'n'), "cannot open it: File name too long");
}

TEST_F(ReadFile, RefusesASparseFileByItsSize) {
  const std::filesystem::path file = write("");
  std::filesystem::resize_file(file, uint64_t{1} << 42);
  refuses(file, "expected at most 64 bytes, but got 4398046511104", 64);
  EXPECT_THAT([&] { read_file(file); }, ThrowsMessage<Error>(HasSubstr("but got 4398046511104")));
  EXPECT_EQ(read_start(file, 4), std::string(4, '\0'));
}

// As a shell's <(...) does.
TEST_F(ReadFile, ReadsAPipeWithoutAName) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);
  ASSERT_EQ(::write(ends[1], "text", 4), 4);
  ::close(ends[1]);
  EXPECT_EQ(read_file(path, 4), "text");
  ::close(ends[0]);
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "text", 4), 4);
  ::close(ends[1]);
  refuses("/proc/self/fd/" + std::to_string(ends[0]), "expected at most 3 bytes, but got more", 3);
  ::close(ends[0]);
}

TEST(NamingFile, NamesTheFileOnce) {
  const std::filesystem::path path = "/models/config.json";
  const auto says = [&](const auto& exception, const std::string& message) {
    EXPECT_THAT([&] { naming_file(path, [&]() -> int { throw exception; }); },
                ThrowsMessage<Error>(message));
  };
  EXPECT_EQ(naming_file(path, [] { return 3; }), 3);
  says(Error("rope: expected 1"), "/models/config.json: rope: expected 1");
  says(Error("config.json: rope: expected 1"), "/models/config.json: rope: expected 1");
  says(Error("read /models/config.json: expected 1"), "read /models/config.json: expected 1");
  says(std::bad_alloc(), "/models/config.json: there is not enough memory");
  says(std::length_error("vector::reserve"), "/models/config.json: there is not enough memory");
  says(std::runtime_error("[json.exception.type_error.302] type must be string"),
       "/models/config.json: expected values of other types or sizes");
  says(std::filesystem::filesystem_error("status", "/models/x",
                                         std::make_error_code(std::errc::permission_denied)),
       "/models/config.json: /models/x: Permission denied");
}

}  // namespace
}  // namespace sextant
