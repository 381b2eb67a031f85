// The Python that parts of the command run in, and its package `sextant`.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sextant::lab {

// Replaces this process by `python3 -m MODULE ARGUMENTS`, or the Python that SEXTANT_PYTHON names.
// It finds the package `sextant` of the source tree if this program was built in one; otherwise the
// package must be installed beside it. Throws Error that names the Python and what it must have if
// it cannot be run.
[[noreturn]] void become_python(const std::string& module,
                                const std::vector<std::string>& arguments,
                                const std::string& must_have);

// Runs the same as a child, which is killed when this process ends, and returns its exit status.
// When should_stop() becomes true, the child gets SIGTERM once. Throws the same Error, and one if a
// signal ended the child.
int run_python(const std::string& module, const std::vector<std::string>& arguments,
               const std::string& must_have, const std::function<bool()>& should_stop);

// Throws the same Error unless that Python can be run and finds the module.
void check_python(const std::string& module, const std::string& must_have);

// The Python that become_python() runs.
std::string python_name();

}  // namespace sextant::lab
