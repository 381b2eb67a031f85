from typing import Any

from .report import ERROR as ERROR
from .report import FINDINGS as FINDINGS
from .report import SOUND as SOUND
from .report import UNJUDGED as UNJUDGED
from .report import WARNING as WARNING
from .report import Finding as Finding
from .report import LayerRow as LayerRow
from .report import Report as Report
from .report import Unjudged as Unjudged

__all__ = ["ERROR", "FINDINGS", "Finding", "LayerRow", "Report", "SOUND", "UNJUDGED", "Unjudged",
           "WARNING", "doctor"]

def doctor(model: Any) -> Report: ...
