"""Bytes -> tables: finds recordings, reads any real trace and says what it repaired."""

from slipstream.ingest.location import Recording, locate
from slipstream.ingest.parallel import read_all
from slipstream.ingest.reading import read

__all__ = ["Recording", "locate", "read", "read_all"]
