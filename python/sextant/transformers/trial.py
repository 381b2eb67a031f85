"""A forward pass on trial: whether the attention of a model can be computed, before it is accepted.

A model's code may compute with masks, or hand on arguments, in ways that only show when it runs. So
``accelerate`` runs the model once as it is, to find inputs of its kind, and once by Sextant. Layers
that do not run, as those of another kind of input, or on the device meta, are judged by their code.
"""

import ast
import contextlib
import inspect
import textwrap

import torch

from sextant.transformers.errors import ModelError

ROWS = 8


@contextlib.contextmanager
def undisturbed(model):
    """Runs in the block leave no trace: random numbers, training modes, buffers and other
    attributes of modules are as before."""
    modules = {module: dict(module.__dict__) for module in model.modules()}
    buffers = [(module, {name: (x, None if x is None else x.clone())
                         for name, x in module._buffers.items()}) for module in modules]
    devices = {p.device.index for p in model.parameters() if p.device.type == "cuda"}
    model.eval()
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            yield
    finally:
        for module, attributes in modules.items():
            module.__dict__.clear()
            module.__dict__.update(attributes)
        for module, kept in buffers:
            module._buffers.clear()
            for name, (x, copy) in kept.items():
                if x is not None and not torch.equal(x, copy):  # frequencies are changed in place
                    x.copy_(copy)
                module._buffers[name] = x


def inputs_for(model, inputs):
    """Arguments of a forward pass that the model can compute by itself: the ones given, or some of
    its kind; None if it can compute none of these."""
    if any(x.device.type == "meta" for x in model.parameters()):
        return None
    for named in [inputs] if inputs is not None else _candidates(model):
        try:
            with undisturbed(model):
                model(**named)
            return named
        except Exception as error:  # pylint: disable=broad-except  # of any model's code
            if inputs is not None:
                raise ModelError(f"inputs: expected arguments that {type(model).__name__} computes "
                                 f"by itself, but it raises {_said(error)}") from error
    return None


def run(model, named, modules):
    """Runs a model that is served by Sextant now, and returns those of the modules, {name: module},
    that did not run. Raises ModelError if the model cannot be served."""
    reached = set()
    handles = [module.register_forward_pre_hook(lambda *_, name=name: reached.add(name))
               for name, module in modules.items()]
    try:
        with undisturbed(model):
            model(**named)
    except Exception as error:  # pylint: disable=broad-except  # of any model's code
        raise ModelError(f"{type(model).__name__}: expected a model whose forward pass Sextant can "
                         f"compute, but on trial it raises {_said(error)}") from error
    finally:
        for handle in handles:
            handle.remove()
    return {name: module for name, module in modules.items() if name not in reached}


def refuse_unknown(model, modules):
    """Raises ModelError unless the code of each attention module hands its mask on as it is, and no
    argument that Sextant's attention does not know."""
    for name, module in modules.items():
        wrong = _wrong(module)
        if wrong:
            raise ModelError(
                f"{type(model).__name__}: expected attention that runs on trial, or whose code is "
                f"known, but {name} {wrong}; accelerate(model, inputs=...) tries the model with "
                "your arguments of a forward pass")


def _said(error):
    text = " ".join(str(error).split())
    return text if isinstance(error, ModelError) else (
        f"{type(error).__name__}: {text.split('. ')[0][:300]}")


def _wrong(module):
    """A reason why the code of an attention module cannot be judged or served; empty for none."""
    from sextant.transformers.interface import KNOWN
    tree = ast.parse(textwrap.dedent(inspect.getsource(type(module).forward))).body[0]
    parameters = {x.arg for x in (*tree.args.args, *tree.args.kwonlyargs)}
    changed = {x.id for x in ast.walk(tree)
               if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "attention_interface":
            continue
        named = {x.arg: x.value for x in call.keywords if x.arg}
        mask = named.get("attention_mask", call.args[4] if len(call.args) > 4 else None)
        no_mask = isinstance(mask, ast.Constant) and mask.value is None
        if not no_mask and getattr(mask, "id", None) not in parameters - changed:
            return "does not hand its mask on as it is"
        others = set(named) - KNOWN
        if others:
            return f"has arguments unknown to Sextant's attention: {', '.join(sorted(others))}"
        if "position_bias" in named:
            return "has a bias by query and key"
    return ""


def _candidates(model):
    """Arguments of a forward pass, by the model's main input."""
    accepted = inspect.signature(model.forward).parameters
    config, main = model.config, model.main_input_name
    first = next(model.parameters())
    text = config.get_text_config()
    embeddings = _embeddings(model)
    vocabulary = (getattr(embeddings, "num_embeddings", None) or
                  getattr(text, "vocab_size", None) or 9)
    tokens = (torch.arange(2 * ROWS).view(2, ROWS) % max(vocabulary - 5, 1) + 5).clamp(
        max=vocabulary - 1)
    if main == "input_ids":
        shown = torch.ones_like(tokens)
        shown[1, : ROWS // 4] = 0
        boxes = {"bbox": torch.zeros(2, ROWS, 4, dtype=torch.long)} if "bbox" in accepted else {}
        forms = [{"input_ids": tokens, "attention_mask": shown, **boxes},
                 {"input_ids": tokens, **boxes}]
    else:
        tokens = tokens[:1]
        forms = [{main: x} for x in _signals(config, main)]
    for form in forms:
        for more in ({}, {"decoder_input_ids": tokens}):
            if set(more) <= set(accepted):
                yield {name: x.to(first.device, first.dtype if x.is_floating_point() else x.dtype)
                       for name, x in {**form, **more}.items() if name in accepted}


def _embeddings(model):
    try:
        return model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return None


def _signals(config, main):
    """Images, waves or features of some sizes."""
    parts = [config, *(x for x in vars(config).values() if hasattr(x, "model_type"))]

    def field(*names, default):
        values = [getattr(part, name, None) for name in names for part in parts]
        return next((x for x in values if x), default)
    if main == "pixel_values":
        size = field("image_size", default=224)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return [torch.zeros(1, field("num_channels", default=3), height, width)]
    if main == "input_values":
        return [torch.linspace(-1, 1, n)[None] for n in (4000, 16000)]
    bins = field("num_mel_bins", "feature_projection_input_dim", "feature_size",
                 "input_feat_per_channel", default=80)
    most = 2 * field("max_source_positions", default=32)
    return [torch.linspace(-1, 1, rows * columns).view(1, rows, columns)
            for rows, columns in ((64, bins), (bins, most), (bins, 64), (64, 2 * bins))]
