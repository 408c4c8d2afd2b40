"""The JSON Schema of everything slipstream publishes under the contract."""

from typing import Any

import msgspec

from slipstream.model.diagnosis import Diagnosis, RanksDiagnosis
from slipstream.model.difference import Difference
from slipstream.model.tuning import Tuning


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12); a document is told apart by its ``kind``: diagnosis, ranks, diff or tuning."""
    return msgspec.json.schema(Diagnosis | RanksDiagnosis | Difference | Tuning)
