// hugging_face_cases DIR: writes a folder for each case of tests/lab/families.h, as the laboratory
// writes a trained model, with the logits of its decoder: DIR/NAME/{config.json, ...,
// logits.safetensors}.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <exception>
#include <filesystem>

#include "sextant/files/safetensors.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/torch/model_folder.h"
#include "tests/lab/families.h"

namespace sextant::lab {
namespace {

void write_case(const FamilyCase& one, const std::filesystem::path& folder) {
  const at::NoGradGuard no_gradients;
  const Decoder decoder = random_decoder(one.config);
  const std::string obstacle = write_model(one.config, decoder, folder);
  const std::vector<int64_t> tokens = family_tokens(4 * kFamilyLength);
  const at::Tensor logits = decoder.logits(at::tensor(tokens).unsqueeze(0)).contiguous();
  const auto bytes = [](const void* data, size_t size) {
    return std::string_view(static_cast<const char*>(data), size);
  };
  write_file(folder / "logits.safetensors",
             safetensors_file({.tensors = {{"tokens",
                                            "I64",
                                            {1, 4 * kFamilyLength},
                                            bytes(tokens.data(), tokens.size() * sizeof(int64_t))},
                                           {"logits", "F32", logits.sizes().vec(),
                                            bytes(logits.data_ptr(), logits.nbytes())}}}));
  fmt::print("{}\t{}\n", one.name, obstacle);
}

}  // namespace
}  // namespace sextant::lab

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    for (const auto& one : sextant::lab::family_cases()) {
      sextant::lab::write_case(one, std::filesystem::path(argv[1]) / one.name);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
