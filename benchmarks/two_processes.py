"""Throughput of two processes on two files against one process that reads both.

    python benchmarks/two_processes.py A.json.gz B.json.gz --repeats 7

Each process has imported everything before the clock starts; arms are interleaved. Printed is the ratio of throughputs,
median and range over the repeats.
"""

import argparse
import os
import statistics
import subprocess
import sys

READS = 4
"""Reads of a file per measurement: one alone takes a few tenths of a second."""
READER = f"""
import sys, time
import polars
from slipstream.ingest import read
polars.DataFrame({{"a": [1, 2]}}).filter(polars.col("a") > 1)
print("ready", flush=True)
sys.stdin.readline()
began = time.perf_counter()
for _ in range({READS}):
    read(sys.argv[1])
print(time.perf_counter() - began, flush=True)
"""


def seconds_of(files: list[str]) -> list[float]:
    """Seconds that one process per file takes, all at the same time."""
    processes = [
        subprocess.Popen([sys.executable, "-c", READER, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for file in files
    ]
    pipes = [(process.stdin, process.stdout) for process in processes]
    for _, answer in pipes:
        assert answer is not None
        answer.readline()
    for start, _ in pipes:
        assert start is not None
        start.write("\n")
        start.flush()
    seconds = [float(answer.readline()) for _, answer in pipes if answer is not None]
    for process in processes:
        process.wait()
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs=2)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    ratios = []
    for _ in range(args.repeats):
        alone = sum(seconds_of([file])[0] for file in args.files)
        ratios.append(alone / max(seconds_of(args.files)))
    print(
        f"two processes against one: {statistics.median(ratios):.2f} times the throughput "
        f"({min(ratios):.2f} to {max(ratios):.2f}), load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
