"""DistributedDataParallel relies on the graph staying the same."""

from typing import ClassVar

from slipstream.tuning.ddp_option import DdpOption


class DdpStaticGraph(DdpOption):
    """Tells DistributedDataParallel that the same parameters take part in every step.

    It then orders its buckets once and does not look for unused parameters. A graph that does change gives wrong
    gradients or an error, which the check of numerics has to see.
    """

    title = "static graph"
    fix_class = "exact"
    defaults: ClassVar = {"static_graph": True}
