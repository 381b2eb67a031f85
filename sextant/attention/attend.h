// attend() and attend_backward(), and the backends that compute them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "sextant/attention/score.h"
#include "sextant/base/context.h"
#include "sextant/base/export.h"

namespace sextant {

class PreparedPlan;

// The memory that holds a backend's operands, results and gradients.
enum class Device { kHost, kCuda };

// The passes for which a plan is prepared.
enum class Passes { kForward, kBoth };

// A backend is a value with a name, so that backends can be listed, chosen and tested against each
// other. A null function means that the backend does not serve the scalar type.
struct Backend {
  std::string_view name;
  std::string_view description;
  Device device = Device::kHost;
  // The type to which q, k, weights and v are rounded before they are multiplied; kFloat32: they
  // are not rounded.
  DType products = DType::kFloat32;
  // Batch invariance: a query's result is bitwise the same whatever else is in the call, so
  // decoding reproduces prefill.
  bool batch_invariant = true;
  // The reason why it cannot run on this machine, or nothing. Null: it always can.
  std::string (*why_not)() = nullptr;
  // Makes the backend's own part of a plan that has been checked. Null: the backend has no such
  // part.
  std::unique_ptr<BackendPlan> (*make_plan)(const Plan&, const PlanShape&, Passes,
                                            const Context&) = nullptr;
  // Makes the part for another plan, in the memory of the one that is given. Null: make_plan makes
  // it anew.
  void (*renew_plan)(std::unique_ptr<BackendPlan>&, const Plan&, const PlanShape&, Passes,
                     const Context&) = nullptr;
  void (*attend_f32)(const Operands<float>&, const PreparedPlan&, const Attended<float>&,
                     const Context&) = nullptr;
  void (*attend_backward_f32)(const Operands<float>&, const PreparedPlan&,
                              const Attended<const float>&, AnyView<const float> d_out,
                              const ScoreGrad<float>&, const Context&) = nullptr;
  void (*attend_f64)(const Operands<double>&, const PreparedPlan&, const Attended<double>&,
                     const Context&) = nullptr;
  void (*attend_backward_f64)(const Operands<double>&, const PreparedPlan&,
                              const Attended<const double>&, AnyView<const double> d_out,
                              const ScoreGrad<double>&, const Context&) = nullptr;
};

SEXTANT_API const Backend& reference_backend();  // float64 inside, naive: the oracle
SEXTANT_API const Backend& cpu_backend();        // float32, SIMD, tiled, threaded
// The cpu backend with bfloat16 products in the forward pass: scale q and k (after rotation),
// weights and v are rounded to bfloat16, and their products are summed in float32. It is up to
// twice as fast where the machine multiplies bfloat16 (AMX, AVX512_BF16, or NEON's BF16 with
// Highway 1.2 or later), and slower than cpu elsewhere. Each weight and value has an error of up to
// 2^-9 of itself and each score of up to 2^-8 scale |q| |k|; values that are exact in bfloat16 have
// none. Elements of q and k beyond 3.39e38 become infinite. Tables and biases are computed as in
// cpu. So are calls of at most 8 queries (counted with the heads of a group), which are bound by
// memory; the bits of a decoded token therefore differ from those of prefill. The backward pass is
// cpu's.
SEXTANT_API const Backend& cpu_bfloat16_backend();
// Whether this machine, in this build, has an instruction for products of bfloat16.
SEXTANT_API bool multiplies_bfloat16();

// The cpu backend with float32 products by Intel's AMX, within the same error bounds; without AMX
// it is cpu. Each value is the exact sum of three bfloat16 terms, and products of terms are summed
// in float32. Causal sequences of 2048 tokens take 0.67 to 0.76 of cpu's time forward and 0.80 to
// 0.94 backward (Granite Rapids), those of 256 tokens the same time, and shorter ones more. Calls
// of at most 8 queries, and blocks with values that have no such terms (infinities, NaN, magnitudes
// beyond 3.39e38 or below 2^-100), are computed as in cpu; the bits of a decoded token therefore
// differ from those of prefill. Products with tables and of moduli are computed as in cpu. Weights
// and score gradients below 2^-102 lose some of their last bits.
SEXTANT_API const Backend& cpu_bf16x3_backend();
// Whether the machine has AMX and its system permits its use.
SEXTANT_API bool multiplies_by_amx();

// NVIDIA GPUs (sm_80 and later): operands, results and gradients are in the memory of the current
// CUDA device, and calls are queued on Context::stream. If q, k and v are all bfloat16, or all
// float16, they are multiplied as they are, weights and gradients of scores are rounded to that
// type, and sums are float32; else, and where rotations have growth, products are float32. All
// gradients are deterministic. q and v have at most 256 columns. Calls throw Error if
// why_no_cuda() is not empty.
SEXTANT_API const Backend& cuda_backend();
// The same with float32 products for operands of any type.
SEXTANT_API const Backend& cuda_float32_backend();
// The reason why no GPU can be used: there is no libsextant_cuda.so, no driver or no device. Empty:
// one can be used.
SEXTANT_API std::string why_no_cuda();

// All registered backends, those above and those that join() added: also those with operands in the
// memory of a GPU, and those that cannot run here.
SEXTANT_API std::span<const Backend* const> backends();
// The reason why a backend cannot run on this machine; empty: it can. Its calls throw Error with
// the reason.
SEXTANT_API std::string why_not(const Backend& backend);
// Adds a backend, which must live until the program ends, to the list of backends(). Throws Error
// if its name is taken. No other thread may use backends() or backend() meanwhile.
SEXTANT_API void join(const Backend& backend);
// Throws Error that lists the known names.
SEXTANT_API const Backend& backend(std::string_view name);

// A plan that has been checked and prepared for one backend and one shape. It is made once for a
// layout and serves any number of calls, in any thread, until it is renewed. The arrays that the
// plan points to must not change while it is in use.
class SEXTANT_API PreparedPlan {
 public:
  // Throws Error that names the field if frames, key ranges, rotations or pages do not fit the
  // shape.
  PreparedPlan(Plan plan, const PlanShape& shape, const Backend& backend,
               const Context& context = {}, Passes passes = Passes::kBoth);

  // Takes another plan and shape for the same backend and passes, in the memory of those before: a
  // decoding step whose plan is not larger than an earlier one allocates nothing. Rotations of the
  // earlier plan that the new one points to must not have changed. Throws Error as the constructor
  // does; the object then serves no call.
  void renew(const Plan& plan, const PlanShape& shape, const Context& context = {});

  const Plan& plan() const { return plan_; }
  const PlanShape& shape() const { return shape_; }
  const Backend& backend() const { return *backend_; }
  Passes passes() const { return passes_; }
  const BackendPlan* of_backend() const { return own_.get(); }  // or null
  const PageRange& page_range() const { return page_range_; }   // of the page table
  bool covers_distances() const { return covers_distances_; }   // a diagonal for each visible one

 private:
  Plan plan_;
  PlanShape shape_;
  const Backend* backend_;
  Passes passes_;
  PageRange page_range_;
  bool covers_distances_ = true;

  void check();
  std::unique_ptr<BackendPlan> own_;
};

template <class T>
SEXTANT_API PlanShape shape_of(const Operands<T>& operands, const Plan& plan);

// Both throw Error that names the operand if shapes do not fit, or if the backend does not serve T,
// and then write nothing. The backward pass uses the given `out`: if that was rounded to 16 bits
// with an error e, the score gradients have an error of p_ij d_out . e.
template <class T>
SEXTANT_API void attend(const Operands<T>& operands, const PreparedPlan& plan,
                        const Attended<T>& result, const Context& context = {});
template <class T>
SEXTANT_API void attend_backward(const Operands<T>& operands, const PreparedPlan& plan,
                                 const Attended<const T>& result,
                                 std::type_identity_t<AnyView<const T>> d_out,
                                 const ScoreGrad<T>& grad, const Context& context = {});

// The same with a plan that is prepared for this call alone.
template <class T>
SEXTANT_API void attend(const Score<T>& score, const Attended<T>& result, const Backend& backend,
                        const Context& context = {});
template <class T>
SEXTANT_API void attend_backward(const Score<T>& score, const Attended<const T>& result,
                                 std::type_identity_t<AnyView<const T>> d_out,
                                 const ScoreGrad<T>& grad, const Backend& backend,
                                 const Context& context = {});

}  // namespace sextant
