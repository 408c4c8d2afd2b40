"""Gradients of DistributedDataParallel live in its buckets."""

from typing import ClassVar

from slipstream.tuning.ddp_option import DdpOption


class DdpGradientViews(DdpOption):
    """Has gradients be views of the buckets that are exchanged, which saves one copy of all of them, and its memory.

    Gradients must then not be detached in place.
    """

    title = "gradients as views of the buckets"
    fix_class = "exact"
    defaults: ClassVar = {"gradient_as_bucket_view": True}
