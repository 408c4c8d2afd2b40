"""Bytes -> tables: finds recordings, reads any real trace and says what it repaired."""

from slipstream.ingest.location import Recording, locate
from slipstream.ingest.parallel import read_all
from slipstream.ingest.reading import read
from slipstream.ingest.user_cache import keep_diagnosis, kept_diagnosis, open_kept

__all__ = ["Recording", "keep_diagnosis", "kept_diagnosis", "locate", "open_kept", "read", "read_all"]
