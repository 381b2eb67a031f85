# The headers that are the API, by component of the installation; docs/cpp.md lists them for users.
# All other headers of these folders are internal and are not installed.
set(sextant_core_headers
  sextant/sextant.h
  sextant/ggml.h
  sextant/version.h
  sextant/c/array.h
  sextant/c/attention.h
  sextant/c/cache.h
  sextant/c/rope.h
  sextant/base/aligned_memory.h
  sextant/base/context.h
  sextant/base/error.h
  sextant/base/executor.h
  sextant/base/export.h
  sextant/base/half.h
  sextant/base/joint_call.h
  sextant/base/view.h
  sextant/base/workspace.h
  sextant/position/axes.h
  sextant/position/binary.h
  sextant/position/buckets.h
  sextant/position/clock.h
  sextant/position/double_double.h
  sextant/position/far_decay.h
  sextant/position/fixed_point.h
  sextant/position/frame.h
  sextant/position/position_products.h
  sextant/position/query_scale.h
  sextant/position/row_map.h
  sextant/position/sandwich.h
  sextant/position/sinusoid.h
  sextant/position/slopes.h
  sextant/position/spectrum.h
  sextant/position/turns.h
  sextant/position/stretch/by_parts.h
  sextant/position/stretch/linear.h
  sextant/position/stretch/longrope.h
  sextant/position/stretch/ntk.h
  sextant/position/stretch/proportional.h
  sextant/position/stretch/stretch.h
  sextant/position/stretch/yarn.h
  sextant/attention/attend.h
  sextant/attention/dropout.h
  sextant/attention/layouts.h
  sextant/attention/operand_list.h
  sextant/attention/plan.h
  sextant/attention/score.h
  sextant/attention/rotary/cos_sin.h
  sextant/attention/rotary/rotate.h
  sextant/cache/cache_file.h
  sextant/cache/decoding.h
  sextant/cache/kv_cache.h
  sextant/cache/page_store.h)

set(sextant_config_headers
  sextant/sextant_config.h
  sextant/files/gguf.h
  sextant/rope_config/config_path.h
  sextant/rope_config/explain.h
  sextant/rope_config/explain_json.h
  sextant/rope_config/flags.h
  sextant/rope_config/gguf.h
  sextant/rope_config/hugging_face.h
  sextant/rope_config/read_config.h
  sextant/rope_config/vision.h
  sextant/rope_config/rope_config.h
  sextant/rope_config/rope_scaling.h
  sextant/rope_config/write_config.h)

# sextant_install_headers(component headers...)
function(sextant_install_headers component)
  foreach(header IN LISTS ARGN)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder}
      COMPONENT ${component})
  endforeach()
endfunction()
