"""A small training script that has run under the capture, and what tests read of it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from slipstream.capture import Outcome

MODEL = """
import os, sys
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
def batch():
    return torch.randn(4, 8)
"""
"""First lines that most scripts share: seven of them."""


class Run(msgspec.Struct):
    """A script that has run under the capture."""

    outcome: Outcome
    stdout: str
    stderr: str
    script: Path

    @property
    def rank(self) -> Path:
        return self.outcome.folder.rank(0)

    def table(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.rank / f"{name}.parquet").with_columns(pl.col(pl.Categorical).cast(pl.String))

    def trace(self, name: str = "trace.json.gz") -> dict[str, Any]:
        with gzip.open(self.rank / name) as file:
            document: dict[str, Any] = json.load(file)
        return document

    def marks(self) -> list[str]:
        return sorted(
            (event["name"] for event in self.trace()["traceEvents"] if event["name"].startswith("ProfilerStep#")),
            key=lambda name: int(name.partition("#")[2]),
        )

    def line_of(self, text: str) -> int:
        """Number of the only line of the script that holds a text."""
        lines = self.script.read_text().splitlines()
        (found,) = (number for number, line in enumerate(lines, 1) if text in line)
        return found


Record = Callable[..., Run]
