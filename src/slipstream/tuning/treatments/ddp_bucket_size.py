"""DistributedDataParallel exchanges gradients in buckets of another size."""

from typing import ClassVar

from slipstream.tuning.ddp_option import DdpOption


class DdpBucketSize(DdpOption):
    """Sets the size of the buckets in MiB; torch's own is 25.

    Larger ones pay where many small collectives cost their latency, smaller ones where the exchange begins too late
    to hide behind the backward pass. Sums are formed in another order.
    """

    title = "larger buckets of gradients"
    fix_class = "rounding"
    defaults: ClassVar = {"bucket_cap_mb": 100}
