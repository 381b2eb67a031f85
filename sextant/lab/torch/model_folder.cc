// Each tensor of a file has its place in the decoder: by name, or by the mapping of the model's
// family. Sizes are checked before a model is made.
#include "sextant/lab/torch/model_folder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/files/safetensors.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/result/result.h"
#include "sextant/models/hugging_face/layout.h"
#include "sextant/models/hugging_face/tokenizer.h"
#include "sextant/torch/method.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using hugging_face::Family;
using hugging_face::ReadConfig;
using hugging_face::TensorMapping;
using nlohmann::json;
using Form = TensorMapping::Form;

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";

std::string shown(at::IntArrayRef shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// The decoder's own parameter names, or the tensor mapping of the model's family.
std::vector<TensorMapping> places_of(const Decoder& decoder, const ReadConfig& config) {
  if (config.family != Family::kOwn)
    return hugging_face::places(config.config, config.family, config.one_matrix);
  std::vector<TensorMapping> places;
  for (const NamedParameter& parameter : decoder.parameters())
    places.push_back({.tensor = parameter.name,
                      .parameter = parameter.name,
                      .shape = parameter.value.sizes().vec()});
  return places;
}

at::Tensor order_of(const ModelConfig& config, int64_t rows) {
  json options = json::parse(config.options);
  if (config.method == "window") options = options.at("options");
  const json dim = complete_options("rope", options).at("dim");
  const int64_t head_dim = config.model.head_dim();
  const int64_t turning = dim.is_null() ? head_dim : dim.get<int64_t>();
  const at::Tensor of_head = at::tensor(hugging_face::half_split_order(head_dim, turning));
  std::vector<at::Tensor> heads;
  for (int64_t first = 0; first < rows; first += head_dim) heads.push_back(of_head + first);
  return at::cat(heads);
}

double embedding_scale(const ModelConfig& config) {
  return std::sqrt(static_cast<double>(config.model.width));
}

// The rows of the parameter that this tensor of the file holds, or the whole parameter if it is a
// scalar.
at::Tensor rows_of(const at::Tensor& parameter, const TensorMapping& place) {
  return place.shape.empty() ? parameter : parameter.narrow(0, place.first_row, place.shape[0]);
}

// Converts a parameter to a tensor of the file.
at::Tensor in_file(const TensorMapping& place, const at::Tensor& parameter,
                   const ModelConfig& config) {
  if (place.form == Form::kZeros) return at::zeros(place.shape);
  if (place.form == Form::kTransposed) return parameter.t().contiguous();
  if (place.form == Form::kScaled) return parameter * embedding_scale(config);
  const at::Tensor rows = rows_of(parameter, place);
  if (place.form == Form::kRows) return rows.contiguous();
  return rows.index_select(0, order_of(config, place.shape[0]));
}

// The inverse of in_file(): copies a tensor of the file into the parameter.
void from_file(const TensorMapping& place, const at::Tensor& tensor, const at::Tensor& parameter,
               const ModelConfig& config) {
  if (place.form == Form::kZeros && tensor.count_nonzero().item<int64_t>() != 0)
    fail("weights: " + place.tensor + ": expected zeros, as there are no biases here");
  if (place.form == Form::kTransposed) parameter.copy_(tensor.t());
  if (place.form == Form::kRows) rows_of(parameter, place).copy_(tensor);
  if (place.form == Form::kInterleaved) {
    const at::Tensor order = at::argsort(order_of(config, place.shape[0]));
    rows_of(parameter, place).copy_(tensor.index_select(0, order));
  }
  // kScaled is a second copy, see fill().
}

at::ScalarType type_of(const TensorBytes& tensor) {
  if (tensor.dtype == "F32") return at::kFloat;
  if (tensor.dtype == "F64") return at::kDouble;
  if (tensor.dtype == "F16") return at::kHalf;
  if (tensor.dtype == "BF16") return at::kBFloat16;
  fail("weights: " + tensor.name + ": expected F64, F32, F16 or BF16, but got " + tensor.dtype);
}

// Converts to float32 in memory of its own.
at::Tensor tensor_of(const TensorBytes& tensor) {
  const at::ScalarType type = type_of(tensor);
  const std::string bytes(tensor.bytes);  // aligned for any type
  return at::from_blob(const_cast<char*>(bytes.data()), tensor.shape, type)
      .to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
}

struct WeightsFile {
  fs::path path;
  std::string bytes;
  Safetensors content;  // views of `bytes`
};

WeightsFile read_weights_file(const fs::path& folder) {
  WeightsFile file{.path = folder / kWeightsFile, .bytes = read_file(folder / kWeightsFile)};
  try {
    file.content = parse_safetensors(file.bytes);
  } catch (const std::exception& error) {
    fail("weights: " + file.path.string() + ": " + reason_of(error));
  }
  return file;
}

// Constructing a model takes memory and time, so a file that is too small for the largest matrices
// is rejected first.
void check_size(const WeightsFile& file, const DecoderOptions& model) {
  const int64_t expected = model.width * (model.vocabulary + 2 * model.layers * model.mlp_width);
  int64_t there = 0;
  for (const TensorBytes& tensor : file.content.tensors)
    there +=
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
  if (there >= expected) return;
  fail(
      fmt::format("weights: {}: expected at least {} numbers for {} layers of width {}, but got {}",
                  file.path.string(), expected, model.layers, model.width, there));
}

// Reads the tensors in `places`. The file must contain exactly these, in these shapes.
std::vector<at::Tensor> read_tensors(const WeightsFile& file,
                                     const std::vector<TensorMapping>& places) {
  const Safetensors& content = file.content;
  const std::string where = "weights: " + file.path.string() + ": ";
  std::map<std::string, const TensorBytes*> by_name;
  for (const TensorBytes& tensor : content.tensors) by_name[tensor.name] = &tensor;
  std::map<std::string, bool> named;
  std::vector<at::Tensor> tensors;
  for (const TensorMapping& place : places) {
    const auto found = by_name.find(place.tensor);
    if (found == by_name.end())
      fail(where + place.tensor + ": expected " + shown(place.shape) + ", but it is missing");
    if (found->second->shape != place.shape)
      fail(where + place.tensor + ": expected " + shown(place.shape) + ", but got " +
           shown(found->second->shape));
    tensors.push_back(tensor_of(*found->second));
    named[place.tensor] = true;
  }
  for (const TensorBytes& tensor : content.tensors) {
    if (!named.contains(tensor.name))
      fail(where + tensor.name + ": expected no such tensor of this model, but got one of " +
           shown(tensor.shape));
  }
  return tensors;
}

// Copies the file's tensors into a decoder with the same parameters as the folder's model.
void fill(const Decoder& decoder, const ReadConfig& read, const WeightsFile& file) {
  const at::NoGradGuard no_gradients;
  const std::vector<TensorMapping> places = places_of(decoder, read);
  const std::vector<at::Tensor> tensors = read_tensors(file, places);
  std::map<std::string, at::Tensor> parameters;
  for (const NamedParameter& parameter : decoder.parameters())
    parameters[parameter.name] = parameter.value.detach();
  for (size_t n = 0; n < places.size(); ++n) {
    const bool zeros = places[n].form == Form::kZeros;
    from_file(places[n], tensors[n], zeros ? at::Tensor() : parameters.at(places[n].parameter),
              read.config);
  }
  // A model that was fine-tuned elsewhere may have two different matrices; neither may be
  // dropped.
  for (size_t n = 0; n < places.size(); ++n) {
    if (places[n].form != Form::kScaled) continue;
    const at::Tensor& embedding = parameters.at(places[n].parameter);
    if (!tensors[n].equal(in_file(places[n], embedding, read.config)))
      fail("weights: " + file.path.string() + ": " + places[n].tensor +
           ": expected lm_head.weight times sqrt(width), as sextant.tied in config.json says, but "
           "got another; if they were trained apart, tied is false");
  }
}

ReadConfig read_config_of(const fs::path& folder) {
  if (!fs::is_directory(folder))
    fail("model: " + folder.string() + ": expected a folder with " + kConfigFile + " and " +
         kWeightsFile);
  const fs::path path = folder / kConfigFile;
  return naming_file(path, [&] { return hugging_face::read_config(read_json(path)); });
}

Decoder blank(const ModelConfig& config) {
  return {config.model,
          make_method(config.method, model_shape(config.model, config.train_length),
                      json::parse(config.options)),
          /*seed=*/0};
}

}  // namespace

std::string write_model(const ModelConfig& config, const Decoder& decoder, const fs::path& folder) {
  const at::NoGradGuard no_gradients;
  const hugging_face::Choice choice = hugging_face::choose_family(config);
  const std::vector<TensorMapping> places =
      places_of(decoder, {.config = config, .family = choice.family, .one_matrix = false});
  std::map<std::string, at::Tensor> parameters;
  for (const NamedParameter& parameter : decoder.parameters())
    parameters[parameter.name] = parameter.value.detach().cpu();
  Safetensors content;
  content.metadata = {{"format", "pt"}, {"made_by", "sextant"}};
  std::vector<at::Tensor> tensors;  // owners of the memory that `content` views
  for (const TensorMapping& place : places) {
    tensors.push_back(in_file(
        place, place.form == Form::kZeros ? at::Tensor() : parameters.at(place.parameter), config));
    content.tensors.push_back(
        {.name = place.tensor,
         .dtype = "F32",
         .shape = place.shape,
         .bytes = {static_cast<const char*>(tensors.back().data_ptr()), tensors.back().nbytes()}});
  }
  // The files are written together: weights beside another model's configuration would load
  // wrongly.
  const std::string weights = safetensors_file(content);
  const std::string tokenizer = hugging_face::byte_tokenizer();
  const std::string tokenizer_config = hugging_face::byte_tokenizer_config();
  const std::string model = hugging_face::write_config(config, choice.family).dump(2) + "\n";
  std::vector<NewFile> files{{folder / kWeightsFile, weights}};
  if (config.model.vocabulary == hugging_face::kByteTokens) {
    files.push_back({folder / kTokenizerFile, tokenizer});
    files.push_back({folder / kTokenizerConfigFile, tokenizer_config});
  }
  files.push_back({folder / kConfigFile, model});
  write_files(files);
  return choice.obstacle;
}

SavedModel read_model(const fs::path& folder) {
  const ReadConfig read = read_config_of(folder);
  const WeightsFile file = read_weights_file(folder);
  check_size(file, read.config.model);
  SavedModel model{.config = read.config, .decoder = blank(read.config)};
  fill(model.decoder, read, file);
  return model;
}

ModelConfig read_model_config(const fs::path& folder) { return read_config_of(folder).config; }

std::string obstacle(const fs::path& folder) {
  return hugging_face::choose_family(read_model_config(folder)).obstacle;
}

void read_weights(Decoder& decoder, const fs::path& folder) {
  const SavedModel saved = read_model(folder);
  const std::vector<NamedParameter>&from = saved.decoder.parameters(), &to = decoder.parameters();
  const std::string where = "weights: " + folder.string() + ": ";
  if (from.size() != to.size())
    fail(where + "expected " + std::to_string(to.size()) + " tensors, but got " +
         std::to_string(from.size()));
  for (size_t n = 0; n < to.size(); ++n) {
    if (from[n].name != to[n].name || from[n].value.sizes() != to[n].value.sizes())
      fail(where + "expected " + to[n].name + " " + shown(to[n].value.sizes()) + ", but got " +
           from[n].name + " " + shown(from[n].value.sizes()));
  }
  for (size_t n = 0; n < to.size(); ++n) to[n].value.detach().copy_(from[n].value.detach());
}

}  // namespace sextant::lab
