"""The worker of a survey's arm whose encoding is a class of one's own.

    python3 -m sextant.own_arm --plugin LIBRARY [--save-seconds S] [--progress-fd N] FOLDER
    python3 -m sextant.own_arm --plugin LIBRARY [--progress-fd N] --check JSON

``sextant arm`` starts it. The model, the training and the tests are those of every other arm:
the plug-in of the command runs them in this process. It calls the operators that this module
registers for the parameters and operands of "FILE.py:CLASS" (sextant/lab/torch/own_method.h).
"""

import argparse
import ctypes
import importlib.util
import os
import sys
import traceback
from pathlib import Path

from sextant._printable import print_error, printable_lines

NONE = -1
progress_file = NONE  # the descriptor of the pipe to the survey (sextant/lab/run/worker.h)


def fail(why):
    """Reports the reason to the survey and ends the process, also under frames of C++."""
    line = " ".join(str(why).split())
    print_error(line)
    try:
        if progress_file != NONE:
            os.write(progress_file, f"! {line}\n".encode())
    except OSError:  # the survey is gone
        pass
    os._exit(1)


def describe(error, path):
    """The error as one line, with the last line of the user's file that it passed."""
    if isinstance(error, (RuntimeError, ImportError)) and "expected" in str(error):
        return str(error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    where = f" (line {lines[-1]})" if lines else ""
    return f"{path.name}{where}: {type(error).__name__}: {error}"


def reported(function):
    """function, but an exception ends the process: C++ cannot tell it from one of its own."""
    def call(method, *arguments):
        try:
            return function(method, *arguments)
        except Exception as error:  # pylint: disable=broad-except
            print(printable_lines(traceback.format_exc()), end="", file=sys.stderr)
            fail(describe(error, file_of(method)))
    return call


def file_of(method):
    return Path(method[:method.index(".py:") + 3]).resolve()


def class_of(method):
    """The class of "FILE.py:CLASS"."""
    import sextant

    path, name = file_of(method), method[method.index(".py:") + 4:]
    if path.stem not in sys.modules or getattr(sys.modules[path.stem], "__file__", "") != str(path):
        sys.path.insert(0, str(path.parent))  # for modules beside the file
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    found = vars(sys.modules[path.stem])
    known = [key for key, value in found.items()
             if isinstance(value, type) and issubclass(value, sextant.Encoding)
             and value.__module__ == path.stem]
    if name not in known:
        what = "no subclass of sextant.Encoding" if name in found else "not there"
        raise RuntimeError(f"{path.name}: expected a class {name} that derives from "
                           f"sextant.Encoding, but it is {what}; the file has "
                           f"{', '.join(known) or 'none'}")
    return found[name]


def register():
    """Registers sextant_own::parameters and sextant_own::operands; the result keeps them alive."""
    import json

    import torch
    from sextant._rows import Frame, Rows
    from torch.library import Library

    class Layers(torch.nn.Module):
        """The encoding of each layer, or one for all."""

        def __init__(self, method, shape, options):
            super().__init__()
            layers, heads, key_heads, head_dim, train_length = shape
            kind = class_of(method)
            given = {key: value for key, value in json.loads(options).items() if key != "source"}
            self.encodings = torch.nn.ModuleList(
                kind(heads=heads, key_heads=key_heads, head_dim=head_dim,
                     train_length=train_length, **given)
                for _ in range(1 if kind.shared else layers))

        def forward(self, layer, q, k, v, rows):
            encoding = self.encodings[0 if len(self.encodings) == 1 else layer]
            encoding._check_call(q, k, v)
            scale = q.size(3) ** -0.5 if encoding.scale is None else float(encoding.scale)
            return {"scale": torch.tensor(scale, dtype=torch.float64),
                    **encoding.operands(q, k, v, rows)}

    made = {}

    def layers_of(method, shape, options, seed):
        key = method, tuple(shape), options, seed
        if key not in made:
            torch.manual_seed(seed)
            made[key] = Layers(*key[:3])
        module = made[key]
        return module, [(n, p) for n, p in module.named_parameters() if p.requires_grad]

    def parameters(method, shape, options, seed):
        _, named = layers_of(method, shape, options, seed)
        return ([name.removeprefix("encodings.") for name, _ in named],
                [value.detach().double() for _, value in named])

    def operands(method, shape, options, seed, layer, values, q, k, v, frames, causal):
        module, named = layers_of(method, shape, options, seed)
        rows = Rows([Frame(*frame[1:]) for frame in frames.tolist()], causal, q.size(2), k.size(2))
        replaced = {name: value for (name, _), value in zip(named, values)}
        found = _functional_call()(module, replaced, (layer, q, k, v, rows))
        return list(found), list(found.values())

    library = Library("sextant_own", "DEF")
    library.define("parameters(str method, int[] shape, str options, int seed) -> "
                   "(str[], Tensor[])")
    library.define("operands(str method, int[] shape, str options, int seed, int layer, "
                   "Tensor[] values, Tensor q, Tensor k, Tensor v, Tensor frames, bool causal) -> "
                   "(str[], Tensor[])")
    library.impl("parameters", reported(parameters), "CompositeImplicitAutograd")
    library.impl("operands", reported(operands), "CompositeImplicitAutograd")
    return library


def _functional_call():
    import torch

    if hasattr(torch, "func"):
        return torch.func.functional_call
    from torch.nn.utils.stateless import functional_call
    return functional_call


def refuse_python(error):
    fail(f"{sys.executable}: {str(error).rstrip('.')}; SEXTANT_PYTHON names a Python with the "
         "torch that the program was built with")


def open_plugin(path):
    """The plug-in of the command, in this Python's torch."""
    try:
        import torch
        from sextant import _library
    except ImportError as error:
        refuse_python(error)
    operators = Path(path).parent / "libsextant_torch.so"
    try:
        if operators.is_file():
            _library._refuse_foreign(operators, torch.__version__)
        torch.ops.load_library(path)
        plugin = ctypes.CDLL(path)
    except (ImportError, OSError) as error:
        refuse_python(error)
    plugin.sextant_lab_arm.argtypes = [ctypes.c_char_p, ctypes.c_double, ctypes.c_int]
    plugin.sextant_lab_check.argtypes = [ctypes.c_char_p, ctypes.c_int]
    return plugin


def main():
    global progress_file  # pylint: disable=global-statement
    parser = argparse.ArgumentParser(prog="python3 -m sextant.own_arm")
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--save-seconds", type=float, default=5)
    parser.add_argument("--progress-fd", type=int, default=NONE)
    parser.add_argument("--check")
    parser.add_argument("folder", nargs="?", default="")
    arguments = parser.parse_args()
    progress_file = arguments.progress_fd
    plugin = open_plugin(arguments.plugin)
    library = register()
    if arguments.check:
        status = plugin.sextant_lab_check(arguments.check.encode(), progress_file)
    else:
        status = plugin.sextant_lab_arm(arguments.folder.encode(), arguments.save_seconds,
                                        progress_file)
    del library
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # modules of torch and the plug-in have no order in which they could end


if __name__ == "__main__":
    main()
