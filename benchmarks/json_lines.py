"""What a ready-made columnar JSON reader would cost, against reading a trace to tables as slipstream does.

Processor time (all threads) in one warm process, arms interleaved, median of the repeats. polars is given the columns
and the arguments that tables need, so that it neither guesses types nor keeps what nobody reads; its reader wants one
element per line, so the text is rewritten first. Neither links, repairs nor names anything.

    python benchmarks/json_lines.py trace.json.gz [--repeats 7]
"""

import argparse
import gzip
import io
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from isal import igzip

from slipstream.ingest import read

NUMBERS = ("External id", "correlation", "stream", "device", "Sequence number", "Bytes", "Addr", "Total Allocated")
SCHEMA = {
    "ph": pl.String,
    "cat": pl.String,
    "name": pl.String,
    "pid": pl.String,
    "tid": pl.String,
    "ts": pl.Float64,
    "dur": pl.Float64,
    "id": pl.String,
    "args": pl.Struct(dict.fromkeys(NUMBERS, pl.Int64)),
}


def lines_of(text: bytes) -> bytes:
    """The elements of an undamaged, indented trace, one per line."""
    inside = text[text.index(b"[", text.index(b'"traceEvents"')) + 1 : text.rindex(b"]")]
    return inside.replace(b"\n  },\n  {", b"}\0{").replace(b"\n", b" ").replace(b"\0", b"\n")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    text = igzip.decompress(options.file.read_bytes())
    lines = lines_of(text)
    elements = len(json.loads(text)["traceEvents"])
    if pl.read_ndjson(io.BytesIO(lines), schema=SCHEMA).height != elements:
        raise SystemExit("not every element became a line: this file is laid out in another way")
    arms: dict[str, Callable[[], object]] = {
        "gzip + json.loads": lambda: json.loads(gzip.decompress(options.file.read_bytes())),
        "slipstream, file to tables": lambda: read(options.file),
        "rewriting decompressed text into lines": lambda: lines_of(text),
        "polars.read_ndjson of those lines": lambda: pl.read_ndjson(io.BytesIO(lines), schema=SCHEMA),
    }
    taken: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(options.repeats + 1):
        for name, arm in arms.items():
            begin = time.process_time()
            kept = arm()
            taken[name].append(time.process_time() - begin)
            del kept
    for name, seconds in taken.items():
        rest = sorted(seconds[1:])  # the first of each warms up
        print(f"{name}: {statistics.median(rest):.3f} s ({rest[0]:.3f} to {rest[-1]:.3f})")


if __name__ == "__main__":
    main()
