"""What matrix multiplications and convolutions compute in, as far as names of kernels and types of inputs tell."""

import re
from typing import Literal

Precision = Literal["16bit", "8bit", "tf32", "fp32", "fp64"]

MATMUL_KERNEL = re.compile(
    r"gemm|gemv|matmul|^Cijk_|nvjet|cutlass.*(tensorop|simt|wmma)|convol|scudnn|hcudnn|winograd|[fdw]grad_?(engine|alg)?"
    r"|fprop|dgrad|wgrad|miopen.*conv|igemm|naive_conv|cublas",
    re.I,
)
"""Kernels of libraries for matrix multiplication and convolution."""
MATMUL_OP = re.compile(
    r"^aten::(mm|addmm|bmm|baddbmm|addmv|mv|addbmm|linear|matmul|mkldnn_linear|_addmm_activation|(_|cudnn_|miopen_|mkldnn_)?"
    r"convolution(_backward|_overrideable|_transpose|_backward_input|_backward_weight)*|conv[123]d|thnn_conv2d|_slow_conv2d_forward"
    r"|_conv_depthwise2d)$|^mkldnn::|^mkl::"
)
"""Ops that multiply matrices or convolve by themselves."""
_OF_NAME: tuple[tuple[Precision, re.Pattern[str]], ...] = (
    ("8bit", re.compile(r"e4m3|e5m2|fp8|f8f8|s8s8|int8|^Cijk_[^_]+_[^_]+_(F8|B8|I8)|nvjet_[qo]", re.I)),
    (
        "16bit",
        re.compile(
            r"bf16|fp16|f16f16|_f16|f16_|half|bfloat16|hgemm|hmma|[hs]884(?!\d)|[hs]16816|s161616|h1688|hcudnn"
            r"|^Cijk_[^_]+_[^_]+_(B|H)|nvjet_[th]s?[th]",
            re.I,
        ),
    ),
    ("tf32", re.compile(r"tf32|s1688|xf32|^Cijk_[^_]+_[^_]+_S(X|_MX)", re.I)),
    ("fp64", re.compile(r"dgemm|d884|f64f64|<double|^Cijk_[^_]+_[^_]+_D", re.I)),
    (
        "fp32",
        re.compile(r"sgemm|scudnn|f32f32|<float|_simt_s|ffma|\bfloat\b|^Cijk_[^_]+_[^_]+_S", re.I),
    ),
)
"""In this order: 16-bit kernels name their 32-bit accumulator as well, and s1688 alone means TF32."""
_OF_TYPE: dict[str, Precision] = {
    "float": "fp32",
    "c10::Half": "16bit",
    "c10::BFloat16": "16bit",
    "double": "fp64",
}


def is_matmul(kernel: str) -> bool:
    """Whether a kernel's name is one of a matrix multiplication or convolution."""
    return bool(MATMUL_KERNEL.search(kernel)) and not _rearranges(kernel)


def is_matmul_of_op(kernel: str, op: str) -> bool:
    """Whether a kernel of an unfamiliar name, launched by a matrix op, is its work rather than a copy beside it."""
    return bool(MATMUL_OP.search(op)) and "at::native" not in kernel and not _rearranges(kernel)


def precision_of_kernel(name: str) -> Precision | None:
    """What a matrix kernel multiplies in by its name; None: the name does not tell."""
    return next((precision for precision, pattern in _OF_NAME if pattern.search(name)), None)


def precision_of_types(input_types: str | None) -> Precision | None:
    """What an op computes in by the recorded types of its inputs; None: not recorded, or mixed.

    Args:
        input_types: JSON list as torch records it, such as ``["float", "float", "Scalar"]``.
    """
    named = set(re.findall(r'"([^"]+)"', input_types or ""))
    found = {_OF_TYPE[name] for name in named if name in _OF_TYPE}
    return found.pop() if len(found) == 1 else None


def _rearranges(kernel: str) -> bool:
    return bool(re.search(r"nchwToNhwc|nhwcToNchw|splitK_?reduce|computeOffsets|tensorTransform", kernel, re.I))
