// The vision parts of a config.json: the axes of the grid of patches that rotate its channels, the
// base, the coordinates. families/vision.json has the facts that code decides.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

struct VisionPair {
  int axis = 0;               // index into VisionPart::axes
  double frequency = 0;       // radians per unit of the coordinate
  int first = 0, second = 0;  // channels of the head
};

struct VisionPart {
  std::string place;       // path in the file: "vision_config"; "": the whole file
  std::string model_type;  // of the code that runs it; empty: not known
  std::string origin;      // "transformers 5.24.0, models/pixtral/modeling_pixtral.py"
  // The part's own positions if nothing rotates: "a learned vector for each patch". If it is not
  // judged, the reason.
  std::string instead = {};
  bool judged = true, rotates = false;
  std::string where = {};  // "memory attention"; empty: all attention of the part
  std::string form = {};   // the name of its form in docs/rotary-axes.md
  int64_t head_dim = 0, rotary_dim = 0;
  double base = 0;
  // "half-split", "interleaved", or "half-split in each axis": the channels of each axis pair among
  // themselves.
  std::string pairing = {};
  std::vector<std::string> axes = {};  // "height", "width", "time"; in the order of the channels
  std::string order = {};              // `axes` of the method rope: "restart", ...
  std::vector<int64_t> sections = {};  // pairs of each axis
  // The coordinate of a patch is its index from 0 plus `first_index`; or, normalised, the patch's
  // centre with the grid's edges at -1 and 1, times 2 pi, which the frequencies contain.
  int64_t first_index = 0;
  bool normalised = false;
  std::string first_token = {}, last_token = {};    // what is done to a token beside the patches
  std::optional<std::array<int64_t, 2>> grid = {};  // rows and columns that image_size gives
  bool only_grid = false;                           // the code runs no other grid
  // Patches a side of the windows; 0: none. Layers in `full_layers` see all patches, at coordinates
  // times full_scale.
  int64_t window = 0;
  std::vector<int64_t> full_layers = {};
  double full_scale = 1;
  std::string adds = {};   // what is added to the patches besides
  int64_t table_size = 0;  // its number of vectors; 0: not known
  std::vector<VisionPair> pairs = {};
  std::vector<std::string> notes = {}, warnings = {};
};

// The vision parts of a config.json, in the file's order. A part that cannot be read is not
// judged; nothing is thrown. text: the language model's groups.
SEXTANT_API std::vector<VisionPart> read_vision(const nlohmann::json& config,
                                                const std::vector<RopeConfig>& text);

// A part as `explain --json` prints it.
SEXTANT_API nlohmann::json vision_json(const VisionPart& part);

// "the index of the patch, from 1": the coordinates in words.
SEXTANT_API std::string coordinates_of(const VisionPart& part);

// "windows of 8 x 8 patches, but all patches in layers 7, 15"; empty if there are none.
SEXTANT_API std::string windows_of(const VisionPart& part);

}  // namespace sextant
