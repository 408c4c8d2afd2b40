"""What a diagnosis hands to whoever shows it."""

import msgspec

from slipstream.model import Diagnosis
from slipstream.store.tables import Tables


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The contract's document together with the tables it was drawn from; reports draw only these."""

    diagnosis: Diagnosis
    tables: Tables
