from __future__ import annotations


def question(region: str, *, year: int) -> str:
    return f"How was {year} in {region}?"
