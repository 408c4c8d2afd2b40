"""What an element of a trace is, by its phase, category and (where the category does not tell) its name.

Both schemas of Kineto and the categories of other vendors' devices. To teach the reader a further category, add
it to ``EXACT`` or, for a whole family, to ``PATTERNS``.
"""

import re
from typing import Literal

RowKind = Literal[
    "op",
    "python",
    "runtime",
    "kernel",
    "copy",
    "set",
    "sync",
    "annotation",
    "device_annotation",
    "flow",
    "counter",
    "memory",
    "metadata",
    "other",
]

NEWER_WORDS = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "async": "ac2g",
    "async_cpu_to_gpu": "ac2g",
    "forward_backward": "fwdbwd",
}
"""Words of the older schema (until PyTorch 1.12 or so) -> those of the newer."""

EXACT: dict[str, RowKind] = {
    "cpu_op": "op",
    "hpu_op": "op",
    "python_function": "python",
    "user_annotation": "annotation",
    "gpu_user_annotation": "device_annotation",
    "cuda_sync": "sync",
    "cuda_profiler_range": "counter",
    "Trace": "other",
    "overhead": "other",
}

PATTERNS: tuple[tuple[re.Pattern[str], RowKind], ...] = (
    # cuda_runtime, cuda_driver, hip_driver, xpu_runtime, mtia_runtime, privateuse1_driver, glow_runtime, ...
    (re.compile(r"^\w+_(runtime|driver)$"), "runtime"),
    # kernel, npu_kernel, privateuse1_kernel, concurrent_kernel, ...
    (re.compile(r"^(\w+_)?kernel$"), "kernel"),
    (re.compile(r"^\w+_memcpy$"), "copy"),
    (re.compile(r"^\w+_memset$"), "set"),
    (re.compile(r"^\w+_sync$"), "sync"),
    (re.compile(r"^\w+_user_annotation$"), "device_annotation"),
)

MTIA_EVENTS = re.compile(r"^mtia_\w*(ccp|insight|workload)\w*$")
MTIA_KINDS: dict[str, RowKind] = {
    "dma_request": "copy",
    "event_record": "sync",
    "event_wait": "sync",
}
"""Names of rows on an MTIA device that are no computation."""

ANNOTATION_NAME = re.compile(
    r"^(ProfilerStep\s*#?\d|Optimizer\.\w+#|enumerate\(DataLoader\)#|#|\[|nccl:|gloo:|mpi:|ucc:|"
    r"DistributedDataParallel\.|FullyShardedDataParallel\.|FSDP::|pipeline_parallel|<class )"
)
"""Ranges that the older schema files among the ops."""

OP_NAME = re.compile(r"^[\w.]+::\w|\w(Backward|AccumulateGrad)\d*$")


def newer_category(phase: str, category: str, name: str) -> str:
    """The category in the newer schema's words; "" where there is none."""
    if category == "Operator" and ANNOTATION_NAME.match(name):
        return "user_annotation"
    if not category and phase in "iI" and name == "[memory]":
        return "cpu_instant_event"
    return NEWER_WORDS.get(category, category)


def row_kind(phase: str, category: str, name: str, process: str) -> RowKind:
    """Which table an element belongs to.

    Args:
        phase: ``ph``.
        category: in the newer schema's words.
        name: of the element.
        process: ``pid`` as text.
    """
    if phase == "M":
        return "metadata"
    if phase in ("s", "t", "f"):
        return "flow"
    if phase == "C":
        return "counter"
    if name == "[memory]":
        return "memory"
    if phase != "X":
        return "other"
    if category in EXACT:
        return EXACT[category]
    if MTIA_EVENTS.match(category):
        return MTIA_KINDS.get(name, "kernel")
    for pattern, kind in PATTERNS:
        if pattern.match(category):
            return kind
    if not category and (process == "CPU functions" or OP_NAME.search(name)):
        return "annotation" if ANNOTATION_NAME.match(name) else "op"
    return "other"


NAME_DECIDES = frozenset({"", "Operator"})
"""Categories for which the name is needed too."""


def name_decides(phase: str, category: str) -> bool:
    """Whether phase and category alone do not tell what an element is."""
    return category in NAME_DECIDES or phase in "iI" or bool(MTIA_EVENTS.match(category))
