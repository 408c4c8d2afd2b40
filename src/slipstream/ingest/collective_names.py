"""Names of kernels that do nothing but communicate between devices.

A kernel is one when its arguments say so (``Collective name``) or when its name matches a row here. The rows name
whole words of communication libraries: a compute kernel such as ``reduce_kernel`` or ``splitKreduce`` matches none.
To teach a further library, add a row.
"""

import re

LIBRARIES: tuple[str, ...] = (
    r"\b(?:nccl|rccl)(?:Dev)?Kernel",  # NVIDIA NCCL, AMD RCCL: ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)
    r"\bmsccl(?:pp)?(?:Kernel|RunInterpreter|::|_)",  # Microsoft MSCCL, MSCCL++
    r"\bcross_device_reduce_\d?stage",  # vLLM and SGLang custom all-reduce
    r"\bmultimem_(?:one_shot_)?(?:all_reduce|all_gather|reduce_scatter)",  # PyTorch symmetric memory, NVLS
    r"\b(?:one|two)_shot_(?:all_reduce|reduce_scatter|all_to_all)",  # PyTorch symmetric memory
    r"\b(?:stream_)?barrier_kernel\b.*(?:uint32_t|unsigned int) ?\*\*",  # PyTorch symmetric memory barriers
    r"\ball_to_all_vdev",  # PyTorch symmetric memory over NVSHMEM
    r"\b(?:one|two)ShotAllReduceKernel",  # TensorRT-LLM
    r"\ballreduce_(?:fusion|prototype)",  # TensorRT-LLM, FlashInfer, AITER; QuickReduce
    r"\bquick_?reduce\b.*\b(?:one|two)shot|\bquickreduce::",  # AMD QuickReduce
    r"\buserbuffers_\w*(?:sum|reduce|gather|scatter|send|recv)",  # Transformer Engine
    r"\bnvshmem\w*(?:alltoall|broadcast|reduce|fcollect|barrier|put|get)\w*kernel",  # NVSHMEM host calls
    r"\bdeep_ep::(?:\w+::)*\w*(?:dispatch|combine|barrier)",  # DeepEP
    r"^hcom_\w+",  # Huawei HCCL: hcom_allReduce__123_4
    r"\boneccl_\w+",  # Intel oneCCL
)
_ANY = re.compile("|".join(LIBRARIES), re.IGNORECASE)

OPERATIONS: tuple[tuple[str, str], ...] = (
    (r"all_?reduce|cross_device_reduce|quick_?reduce|userbuffers_\w*sum", "all_reduce"),
    (r"all_?gather|fcollect", "all_gather"),
    (r"reduce_?scatter", "reduce_scatter"),
    (r"all_?to_?all|dispatch|combine", "all_to_all"),
    (r"broad_?cast", "broadcast"),
    (r"barrier", "barrier"),
    (r"send_?recv|(?<![a-z])(?:i?send|i?recv)(?![a-z])|point_?to_?point|p2p", "send_recv"),
    (r"gather", "gather"),
    (r"scatter", "scatter"),
    (r"kernel_?reduce|(?<![a-z])reduce", "reduce"),
)
"""Words in a kernel's or a collective's name -> the operation; the first match holds."""
_OPERATIONS = tuple((re.compile(words, re.IGNORECASE), operation) for words, operation in OPERATIONS)


def is_collective(name: str) -> bool:
    """Whether a kernel of this name communicates."""
    return _ANY.search(name) is not None


def operation_of(name: str) -> str | None:
    """The operation that a name tells, or None (``ncclDevKernel_Generic`` tells none)."""
    return next((operation for words, operation in _OPERATIONS if words.search(name)), None)
