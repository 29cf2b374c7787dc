"""A package beside the Dag files, as Dag authors have them."""

from __future__ import annotations

import json
from pathlib import Path

from .wording import question


def regions() -> list[str]:
    return json.loads((Path(__file__).parent / "regions.json").read_text())


__all__ = ["question", "regions"]
