"""The dependency graph of one recording: what had to end before what could begin.

``nodes`` cuts the time of threads and streams into tasks; every rule for edges has a file of its own; ``graph`` puts
them together. ``critical_path`` walks it, a forecast replays it.
"""

from slipstream.analysis.graph.edges import EDGE_KINDS, LAUNCH, Edges
from slipstream.analysis.graph.graph import Graph, graph_of
from slipstream.analysis.graph.nodes import NODE_KINDS, Nodes, Resource

__all__ = ["EDGE_KINDS", "LAUNCH", "NODE_KINDS", "Edges", "Graph", "Nodes", "Resource", "graph_of"]
