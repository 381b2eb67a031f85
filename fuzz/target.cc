// A libFuzzer target for the reader that SEXTANT_FUZZ_READER names:
//
//   cmake --preset fuzz && ninja -C build/fuzz fuzz_reader
//   SEXTANT_FUZZ_READER=gguf build/fuzz/bin/fuzz_reader -max_total_time=60 CORPUS_FOLDER
//
// If a folder is given, the samples are written into it first, so that the corpus begins with valid
// files.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "fuzz/readers.h"
#include "sextant/base/error.h"
#include "sextant/files/write_file.h"

namespace {

using sextant::fuzz::Reader;

const Reader& chosen() {
  const char* name = std::getenv("SEXTANT_FUZZ_READER");
  for (const Reader& reader : sextant::fuzz::readers())
    if (name && std::string(name) == reader.name) return reader;
  std::fputs("SEXTANT_FUZZ_READER: expected one of", stderr);
  for (const Reader& reader : sextant::fuzz::readers()) std::fprintf(stderr, " %s", reader.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const Reader& reader = chosen();
  for (int n = 1; n < *argc; ++n) {
    const std::filesystem::path folder = (*argv)[n];
    if (!std::filesystem::is_directory(folder)) continue;
    int number = 0;
    for (const std::string& sample : reader.samples())
      sextant::write_file(folder / ("sample-" + std::to_string(number++)), sample);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Reader& reader = chosen();
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (reader.seal) reader.seal(bytes);
  try {
    reader.read(bytes);
  } catch (const sextant::Error&) {  // allowed; any other exception ends the run
    return 0;
  }
  return 0;
}
