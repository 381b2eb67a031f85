#include "sextant/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "sextant/base/error.h"

namespace sextant {
namespace {

constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header instead of zlib's
constexpr int kMemory = 9;
constexpr size_t kMostAtOnce = std::numeric_limits<uInt>::max();

// Owns the state that zlib keeps between calls.
struct Deflation {
  Deflation() {
    const int state =
        ::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY);
    if (state != Z_OK) fail("gzip: cannot begin: out of memory");
  }
  ~Deflation() { ::deflateEnd(&stream); }
  Deflation(const Deflation&) = delete;
  Deflation& operator=(const Deflation&) = delete;

  z_stream stream{};
};

}  // namespace

std::string gzip(std::string_view bytes) {
  Deflation deflation;
  z_stream& stream = deflation.stream;
  std::string out;
  std::string buffer(size_t{1} << 16, '\0');
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      const size_t count = std::min(bytes.size(), kMostAtOnce);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(count);
      bytes.remove_prefix(count);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = ::deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    // Z_BUF_ERROR, which is not an error elsewhere, cannot occur here: there is output space, and
    // input or a pending finish.
    if (state != Z_OK && state != Z_STREAM_END)
      fail("gzip: cannot go on: zlib says " + std::to_string(state));
    out.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  return out;
}

}  // namespace sextant
