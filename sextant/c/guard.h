// Exceptions as status codes with a message.
#pragma once

#include <new>
#include <stdexcept>

#include "sextant/base/error.h"
#include "sextant/sextant.h"

namespace sextant::c {

// Calls f() and returns the status of its end.
template <class F>
sextant_status guarded(F&& f) noexcept {
  try {
    f();
    return SEXTANT_OK;
  } catch (const Error& error) {
    return sextant_fail(SEXTANT_BAD_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return sextant_fail(SEXTANT_NO_MEMORY, "there is not enough memory");
  } catch (const std::length_error&) {
    return sextant_fail(SEXTANT_NO_MEMORY, "there is not enough memory");
  } catch (const std::exception& error) {
    return sextant_fail(SEXTANT_INTERNAL, error.what());
  } catch (...) {
    return sextant_fail(SEXTANT_INTERNAL, "an unknown exception");
  }
}

}  // namespace sextant::c
