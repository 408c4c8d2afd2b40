"""Reads one recording on behalf of another process: RECORDING as JSON, FOLDER for the answer. See ``parallel``."""

import sys
from pathlib import Path

import msgspec

from slipstream.ingest.location import Recording
from slipstream.ingest.parallel import leave

if __name__ == "__main__":
    leave(msgspec.json.decode(sys.argv[1], type=Recording), Path(sys.argv[2]))
