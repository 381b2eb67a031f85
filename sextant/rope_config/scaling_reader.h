// Readers of the types of scaling, each with its own fields.
#pragma once

#include <vector>

#include "sextant/files/json_fields.h"
#include "sextant/position/stretch/stretch.h"
#include "sextant/rope_config/rope_scaling.h"

namespace sextant {

inline constexpr double kMostFactor = 1e9;

// Writes the fields' values to `to`. Each function reads the fields of its type.
struct ScalingReader {
  const JsonFields& fields;
  const RopeScalingContext& context;
  RopeScaling& to;

  double factor();
  int64_t original_length(bool may_be_model_length);
  double base() const;
  void read_plain();
  void read_query_scale(int64_t length);
  Yarn yarn_shape();
  void warn_of(const Yarn& yarn);
  void read_other_engines();
  void read_yarn();
  void read_deepseek_yarn();
  ByParts parts();
  void read_llama3();
  std::vector<double> list(const char* name);
  void read_longrope();
  DynamicStretch grown(Stretch stretch, Growth growth);
  void read_linear();
  void read_ntk();
  void read_dynamic();
  void read_proportional();
};

}  // namespace sextant
