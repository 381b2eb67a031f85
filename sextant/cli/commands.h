// The subcommands of `sextant`, one file each: add_x() declares x's options; its callback does the
// work, throws Error when it cannot, and throws CLI::RuntimeError(code) to end with an exit status
// that is not 0 or 1. Nothing here loads libtorch.
#pragma once

namespace CLI {
class App;
}

namespace sextant::cli {

void add_plot(CLI::App& app);

}  // namespace sextant::cli
