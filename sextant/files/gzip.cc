#include "sextant/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "sextant/error.h"

namespace sextant {
namespace {

constexpr int kGzip = 15 + 16;  // the largest window, and a head of gzip instead of zlib's
constexpr int kMemory = 9;
constexpr size_t kMostAtOnce = std::numeric_limits<uInt>::max();

}  // namespace

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  if (::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    fail("gzip: cannot begin: out of memory");
  }
  std::string out;
  std::string buffer(size_t{1} << 16, '\0');
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const size_t count = std::min(bytes.size(), kMostAtOnce);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(count);
      bytes.remove_prefix(count);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = ::deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  ::deflateEnd(&stream);
  return out;
}

}  // namespace sextant
