"""How many edges of each kind the dependency graph has, and how many were false."""

import numpy as np
import polars as pl

from slipstream.analysis.graph import EDGE_KINDS, graph_of
from slipstream.store import Tables


def build(tables: Tables) -> pl.DataFrame:
    """Fill the table ``graph_edges``; every kind has a row."""
    graph = graph_of(tables)
    decisive = graph.decisive()
    kinds = len(EDGE_KINDS)
    return pl.DataFrame(
        {
            "kind": list(EDGE_KINDS),
            "edges": np.bincount(graph.edges.kind, minlength=kinds),
            "decisive": np.bincount(graph.edges.kind[decisive[decisive >= 0]], minlength=kinds),
            "dropped": [graph.dropped[kind] for kind in EDGE_KINDS],
        }
    )
