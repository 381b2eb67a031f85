"""The facts that a report judges: for each whether it was measured in all layers, and as
configured."""

from __future__ import annotations

from typing import Any

from .report import Finding

# Each fact and the fields of its findings.
FACTS = {
    "rotation": ("rotates", "rotated channels", "pairing", "direction", "frequencies", "precision",
                 "attention factor"),
    "query law": (),
    "positions": ("positions",),
    "scale": ("softmax scale",),
    "window": ("window", "chunk"),
    "mask": ("mask", "attention"),
    "padding": ("padding",),
    "cache": ("cache",),
    "generation": ("generation",),
    "key heads": ("key heads",),
    "norms": ("norms",),
    "softcap": ("softcap",),
    "sinks": ("sinks",),
}
AS_CONFIGURED, DIFFERS, NOT_MEASURED = "as configured", "differs", "not measured"


class Facts:
    """Facts that were measured and that were not, gathered layer by layer."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.missing: dict[str, dict[str, list[int]]] = {}  # fact -> reason -> layers

    def see(self, fact: str) -> None:
        self.seen.add(fact)

    def miss(self, fact: str, layer: int | None, why: str) -> None:
        layers = self.missing.setdefault(fact, {}).setdefault(why, [])
        if layer is not None and layer not in layers:
            layers.append(layer)

    def entries(self, findings: list[Finding]) -> list[dict[str, Any]]:
        """[{"fact", "status", "layers", "why"}], in the order of FACTS, without those that this
        kind of model does not have. layers: those that were not measured, [] for all."""
        found, result = {f.field for f in findings}, []
        for fact, fields in FACTS.items():
            reasons = self.missing.get(fact, {})
            status = DIFFERS if found & set(fields) else NOT_MEASURED if reasons else AS_CONFIGURED
            if status == AS_CONFIGURED and fact not in self.seen:
                continue
            why, layers = next(iter(reasons.items()), ("", []))
            result.append({"fact": fact, "status": status, "layers": sorted(layers),
                           "why": why if status == NOT_MEASURED else ""})
        return result
