"""Every rank keeps its own buffers."""

from typing import ClassVar

from slipstream.tuning.ddp_option import DdpOption


class DdpLocalBuffers(DdpOption):
    """Has DistributedDataParallel not broadcast buffers, such as running means, before every forward pass.

    With normalisation over the batch every rank then keeps statistics of its own, and what is saved is those of
    rank 0: training itself is the same, evaluation is not.
    """

    title = "buffers that are not broadcast"
    fix_class = "semantic"
    defaults: ClassVar = {"broadcast_buffers": False}
