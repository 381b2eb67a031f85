// Decompresses gzip data.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace sextant {

inline std::string gunzip(std::string packed) {
  z_stream stream{};
  std::string out, buffer(1 << 16, '\0');
  int state = ::inflateInit2(&stream, 15 + 16);
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = ::inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  EXPECT_EQ(state, Z_STREAM_END) << "no whole gzip";
  EXPECT_EQ(stream.avail_in, 0U) << "something behind it";
  return out;
}

}  // namespace sextant
