#include "sextant/lab/weights.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "sextant/chart/write_file.h"
#include "sextant/error.h"
#include "sextant/models/safetensors.h"

namespace sextant::lab {

void write_weights(const Decoder& decoder, const std::filesystem::path& path) {
  Safetensors content;
  content.metadata["made_by"] = "sextant";
  for (const NamedParameter& parameter : decoder.parameters()) {
    const at::Tensor& value = parameter.value;
    content.tensors.push_back(
        {.name = parameter.name,
         .dtype = "F32",
         .shape = value.sizes().vec(),
         .bytes = {static_cast<const char*>(value.data_ptr()), value.nbytes()}});
  }
  chart::write_file(path, safetensors_file(content));
}

void read_weights(Decoder& decoder, const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) fail("weights: " + path.string() + ": expected a file that can be read");
  const Safetensors content = parse_safetensors(file);
  std::map<std::string, const TensorBytes*> by_name;
  for (const TensorBytes& tensor : content.tensors) by_name[tensor.name] = &tensor;
  for (const NamedParameter& parameter : decoder.parameters()) {
    const auto found = by_name.find(parameter.name);
    if (found == by_name.end() || found->second->dtype != "F32" ||
        found->second->shape != parameter.value.sizes().vec()) {
      fail("weights: " + path.string() + ": expected " + parameter.name +
           " as F32 of the model's shape, but there is none");
    }
  }
  if (by_name.size() != decoder.parameters().size()) {
    fail("weights: " + path.string() + ": expected " + std::to_string(decoder.parameters().size()) +
         " tensors, but got " + std::to_string(by_name.size()));
  }
  for (const NamedParameter& parameter : decoder.parameters()) {
    const std::string_view bytes = by_name.at(parameter.name)->bytes;
    std::memcpy(parameter.value.data_ptr(), bytes.data(), bytes.size());
  }
}

}  // namespace sextant::lab
