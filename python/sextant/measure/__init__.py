"""Measurements of checkpoints for ``sextant evaluate``, ``extend`` and ``retrieve``.

``python -m sextant.measure FOLDER...`` runs arms that the command has prepared; it is the command
that plans, shows progress, and makes tables and pages. A FOLDER has an arm.json (``arm.Arm``), and
gets records.jsonl with one record per line, and done.json when all are there.
"""

from sextant.measure.errors import MeasureError

__all__ = ["MeasureError"]
