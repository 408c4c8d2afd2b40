"""The JSON Schema of everything slipstream publishes under the contract."""

from typing import Any

import msgspec

from slipstream.model.diagnosis import Diagnosis, RanksDiagnosis
from slipstream.model.difference import Difference


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12); a document is told apart by its ``kind``: diagnosis, ranks or diff."""
    return msgspec.json.schema(Diagnosis | RanksDiagnosis | Difference)
