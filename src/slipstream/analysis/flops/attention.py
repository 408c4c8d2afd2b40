"""Attention: scores and weighted values, each two operations per pair of query and key and element of a head.

Half of the pairs exist where is_causal is recorded as true. The backward pass multiplies five times, one of which
computes the scores again; four belong to the model.
Source: FlashAttention-2 (Dao, 2023), section 4.1.
"""

import functools

import msgspec

from slipstream.analysis.flops.call import Call, Tensor, Work, moved

FAMILY = "attention"
CAUSAL_UNKNOWN = "full attention assumed: is_causal was not recorded"


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Positions of an attention op's arguments."""

    query: int = 0
    """key and value follow it"""
    heads: int = 1
    """dimension of the heads; the queries are in the other one of 1 and 2"""
    causal: int | None
    """position of is_causal; None: it has none"""
    mask_type: int | None = None
    """position of a number that is above 0 for causal masks"""
    packed: int | None = None
    """position of a tensor that is there where sequences of different lengths are packed into one"""


def attention(call: Call, *, layout: Layout, backward: bool = False) -> Work | None:
    """Work of one attention call."""
    query, key, value = (call.tensor(layout.query + at) for at in range(3))
    if query is None or key is None or value is None or {len(query.shape), len(key.shape), len(value.shape)} != {4}:
        return None
    if layout.packed is not None and call.tensor(layout.packed) is not None:
        return None
    length = 3 - layout.heads
    heads = query.shape[0] * query.shape[layout.heads]
    pairs = heads * query.shape[length] * key.shape[length]
    causal = _causal(call, layout)
    once = 2 * pairs * (query.shape[3] + value.shape[3])
    if causal:
        once //= 2
    out = Tensor(shape=(*query.shape[:3], value.shape[3]), size=query.size)
    note = CAUSAL_UNKNOWN if causal is None else None
    if not backward:
        return Work(flops=once, moved_bytes=moved(query, key, value, out), note=note)
    read = moved(query, key, value, out, out)
    written = moved(query, key, value)
    total = None if read is None or written is None else read + written
    return Work(flops=once * 5 // 2, model_flops=once * 2, moved_bytes=total, note=note)


def _causal(call: Call, layout: Layout) -> bool | None:
    if layout.mask_type is not None:
        kind = call.integers(layout.mask_type)
        return None if kind is None else kind[0] > 0
    return False if layout.causal is None else call.flag(layout.causal)


_FORWARD = {
    "aten::_scaled_dot_product_flash_attention": Layout(causal=4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": Layout(causal=4),
    "aten::_scaled_dot_product_efficient_attention": Layout(causal=6),
    "aten::_scaled_dot_product_cudnn_attention": Layout(causal=6),
    "aten::_scaled_dot_product_fused_attention_overrideable": Layout(causal=5),
    "aten::scaled_dot_product_attention": Layout(causal=5),
    "aten::_flash_attention_forward": Layout(heads=2, causal=8, packed=3),
    "aten::_efficient_attention_forward": Layout(heads=2, causal=None, mask_type=9, packed=4),
    "aten::_cudnn_attention_forward": Layout(causal=10, packed=4),
    "flash_attn::_flash_attn_forward": Layout(heads=2, causal=5),
}
_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": Layout(query=1, causal=11),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": Layout(query=1, causal=7),
    "aten::_scaled_dot_product_efficient_attention_backward": Layout(query=1, causal=11),
    "aten::_scaled_dot_product_cudnn_attention_backward": Layout(query=1, causal=14),
    "aten::_flash_attention_backward": Layout(query=1, heads=2, causal=11, packed=6),
    "aten::_efficient_attention_backward": Layout(query=1, heads=2, causal=None, mask_type=14, packed=6),
    "flash_attn::_flash_attn_backward": Layout(query=1, heads=2, causal=11),
}
FORMULAS = {
    **{name: functools.partial(attention, layout=layout) for name, layout in _FORWARD.items()},
    **{name: functools.partial(attention, layout=layout, backward=True) for name, layout in _BACKWARD.items()},
}
