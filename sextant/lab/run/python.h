// The Python that parts of the command run in, and its package `sextant`.
#pragma once

#include <string>
#include <vector>

namespace sextant::lab {

// Replaces this process by `python3 -m MODULE ARGUMENTS`, or the Python that SEXTANT_PYTHON names.
// `package_file`, such as "doctor/__main__.py", is the module's file in the package beside this
// program, that of the wheel or of the source tree; without one there the package must be
// installed. Throws Error that names the Python and what it must have if it cannot be run.
[[noreturn]] void become_python(const std::string& module, const std::string& package_file,
                                const std::vector<std::string>& arguments,
                                const std::string& must_have);

// The Python that become_python() runs.
std::string python_name();

}  // namespace sextant::lab
