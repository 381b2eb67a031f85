// A decoder's weights as a safetensors file, there and back.
#pragma once

#include <filesystem>

#include "sextant/models/decoder.h"

namespace sextant::lab {

void write_weights(const Decoder& decoder, const std::filesystem::path& path);

// Throws Error, and changes nothing, if the file has not exactly the decoder's parameters.
void read_weights(Decoder& decoder, const std::filesystem::path& path);

}  // namespace sextant::lab
