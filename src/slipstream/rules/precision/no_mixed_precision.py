"""PRC002: matrix multiplications run in 32 bits on a device that has faster 16-bit units."""

from typing import ClassVar, cast

import polars as pl

from slipstream.analysis.kernel_types import (
    MATMUL_OP,
    is_matmul,
    is_matmul_of_op,
    precision_of_kernel,
    precision_of_types,
)
from slipstream.model import Dismissal, Evidence, Finding, Fix, NotEnoughData
from slipstream.model.peaks import Peaks, peaks_of
from slipstream.rules.device_bound import host_waits_ns
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.wording import duration, percent, three_digits
from slipstream.store import Tables

MATMUL_SHARE = 0.10
"""Share of the step in 32-bit matrix work below which 16 bits cannot pay: casts and the rest stay as they are."""
KNOWN_SHARE = 0.5
"""If types are known for less than this share of matrix time, nothing is said about the whole."""
CPU_UNITS = ("amx_bf16", "avx512_bf16")
"""CPU features with which 16-bit multiplications are native; without them they are emulated, 10 to 30 times slower."""
CPU_RATIO = 2.0
"""The least that native 16-bit units do: twice the elements per instruction and per byte."""
SNIPPET = """\
# bfloat16: GPUs since Ampere, AMD Instinct, CPUs with AMX or AVX512-BF16
with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
    loss = criterion(model(inputs), targets)
loss.backward()

# float16 (V100, T4): gradients need scaling
scaler = torch.amp.GradScaler(device.type)
with torch.autocast(device_type=device.type, dtype=torch.float16):
    loss = criterion(model(inputs), targets)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()"""


class NoMixedPrecision(Rule):
    """No mixed precision.

    What it detects
    Matrix multiplications and convolutions in 32 bits (plain FP32 or TF32, by kernel names and recorded input types)
    that take at least 10 % of the step, on a device whose 16-bit peak is known and higher. On CPUs only where the
    capture saw native 16-bit units.

    Why it costs time
    Matrix units multiply 16-bit numbers several times as fast as 32-bit ones, and every byte moved is halved. The
    cost is that of Amdahl's law with the ratio of the peaks, but never more than the time for which the host waits
    for the device: faster kernels cannot beat the host's own pace.

    Fix
    Automatic mixed precision: `torch.autocast` around forward and loss, weights stay in 32 bits. With bfloat16 no
    gradient scaling is needed; float16 needs `torch.amp.GradScaler`.

    When not to
    This changes what is computed: 2 to 3 (bfloat16) or 3 to 4 (float16) significant digits in matrix products. Most
    networks train as well, some losses, norms and small models do not; compare a validation metric, not the speed
    alone. It will not help where matrix work is a small part of the step, where the loader or the host sets the
    pace, or on CPUs without such units, where it is many times slower.

    Source
    Micikevicius et al., "Mixed Precision Training", ICLR 2018; PyTorch documentation, "Automatic Mixed Precision
    package"; peaks as in slipstream's hardware table.
    """

    code = "PRC002"
    name = "no mixed precision"
    needs: ClassVar = {"window": (), "ops": ()}
    fix_class = "semantic"
    treatment = "autocast"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find the share of 32-bit matrix work in the step."""
        scope = scope_of(tables)
        rows = (_on_device(tables, scope) if scope.on_device else _on_cpu(tables, scope)).filter(pl.col("self_ns") > 0)
        times = dict(rows.group_by("precision").agg(pl.col("self_ns").sum()).iter_rows())
        known = sum(ns for precision, ns in times.items() if precision is not None)
        wide = times.get("fp32", 0) + times.get("tf32", 0)
        unknown = times.get(None, 0)
        if unknown and known < KNOWN_SHARE * (known + unknown):
            if scope.share(known + unknown) < MATMUL_SHARE:
                return []
            raise NotEnoughData("types of matrix multiplications are not recorded: record with record_shapes=True")
        if not wide:
            return []
        if scope.share(wide) < MATMUL_SHARE:
            return [self.dismissal(f"32-bit matrix work is only {percent(scope.share(wide))} of the time")]
        return [self._verdict(tables, scope, rows, times)]

    def fix(self, finding: Finding) -> Fix:
        """Autocast."""
        return Fix(
            summary="Run forward and loss under torch.autocast: bfloat16 where the device has it, else float16 with a "
            "GradScaler. It changes the numbers that training sees: compare a validation metric. No help where matrix "
            "work is a small part of the step or the host sets the pace.",
            snippet=SNIPPET,
            needs_consent=True,
        )

    def _verdict(
        self, tables: Tables, scope: Scope, rows: pl.DataFrame, times: dict[str | None, int]
    ) -> Finding | Dismissal:
        wide = times.get("fp32", 0) + times.get("tf32", 0)
        if scope.on_device:
            saved, how = _saved_on_device(tables, times)
            waits = host_waits_ns(tables, scope)
            if waits is not None and waits < min(saved, MATMUL_SHARE * wide):
                return self.dismissal(
                    f"32-bit matrix work is {percent(scope.share(wide))} of the time, but the host waits for the "
                    f"{scope.worker} for only {duration(waits)}: faster kernels would leave it idle"
                )
            saved = saved if waits is None else min(saved, waits)
        else:
            unit = _cpu_unit(tables)
            if unit is None:
                return self.dismissal("this CPU has no 16-bit units: 16-bit types would be emulated and far slower")
            saved, how = round(wide * (1 - 1 / CPU_RATIO)), f"this CPU has {unit}"
        return self.finding(
            title=f"Matrix work in 32 bits takes {percent(scope.share(wide))} of the time, {how}: "
            f"up to {duration(saved)} of {duration(scope.length_ns)}",
            cost_ns=saved,
            steps=scope.steps,
            evidence=_evidence(rows),
        )


def _on_device(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Matrix kernels of the window: name, example, self_ns, precision."""
    work = tables["device_work"].filter(
        (pl.col("kind") == "kernel") & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns)
    )
    ops = tables["ops"].select(
        pl.col("event").alias("op_event"), pl.col("name").cast(pl.String).alias("op"), "input_types"
    )
    kernels = (
        work.with_columns(pl.col("name").cast(pl.String))
        .join(ops, on="op_event", how="left", maintain_order="left")
        .group_by("name", "op", "input_types", maintain_order=True)
        .agg(pl.col("dur_ns").sum().alias("self_ns"), pl.col("ts_ns").first(), pl.col("dur_ns").first())
    )
    return _kernels_typed(kernels)


def _on_cpu(tables: Tables, scope: Scope) -> pl.DataFrame:
    """Matrix ops of the window on the host: name, example, self_ns, precision."""
    ops = tables["ops"].filter(pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns))
    ops = ops.join(tables["op_tree"].select("event", "self_ns"), on="event")
    ops = ops.with_columns(pl.col("name").cast(pl.String)).filter(pl.col("name").str.contains(MATMUL_OP.pattern))
    calls = ops.group_by("name", "input_types", maintain_order=True).agg(
        pl.col("self_ns").sum(), pl.col("ts_ns").first(), pl.col("dur_ns").first()
    )
    precision = [precision_of_types(types) for types in calls["input_types"]]
    return calls.with_columns(precision=pl.Series(precision, dtype=pl.String))


def _kernels_typed(rows: pl.DataFrame) -> pl.DataFrame:
    """Only matrix work, with the column ``precision``; a kernel's name is believed before its op's types."""
    keys = list(rows.select("name", "op", "input_types").iter_rows())
    matrix = [is_matmul(name) or (op is not None and is_matmul_of_op(name, op)) for name, op, _ in keys]
    precision = [precision_of_kernel(name) or precision_of_types(types) for name, _, types in keys]
    return rows.with_columns(precision=pl.Series(precision, dtype=pl.String)).filter(
        pl.Series(matrix, dtype=pl.Boolean)
    )


def _saved_on_device(tables: Tables, times: dict[str | None, int]) -> tuple[int, str]:
    """Time that 16 bits save by the ratio of peaks, and the words for it.

    Raises:
        NotEnoughData: the device's peaks are not known.
    """
    device = tables.source.device
    peaks = peaks_of(device)
    fast = _sixteen_bit(peaks)
    if peaks is None or fast is None or peaks.fp32_tflops is None:
        raise NotEnoughData(
            f"the 16-bit and 32-bit peaks of {device or 'this device'} are not in slipstream's hardware table"
        )
    slow = {"fp32": peaks.fp32_tflops, "tf32": peaks.tf32_tflops or peaks.fp32_tflops}
    saved = sum(times.get(kind, 0) * max(0.0, 1 - slow[kind] / fast) for kind in slow)
    main = max(slow, key=lambda kind: times.get(kind, 0))
    return round(saved), f"which a {peaks.device} does {three_digits(fast / slow[main])} times as fast in 16 bits"


def _sixteen_bit(peaks: Peaks | None) -> float | None:
    """The rate that 16-bit work can reach: the peak, times what is achievable of it where that is known."""
    if peaks is None:
        return None
    peak = peaks.bf16_tflops or peaks.fp16_tflops
    return peak * (peaks.achievable_bf16_share or 1.0) if peak else None


def _cpu_unit(tables: Tables) -> str | None:
    """The 16-bit unit of the CPU, or None.

    Raises:
        NotEnoughData: the recording does not tell what the CPU has.
    """
    if not tables.trace.has("switches"):
        raise NotEnoughData("whether this CPU has 16-bit units is not recorded: record with `slipstream run`")
    switches = dict(tables["switches"].select("name", "value").iter_rows())
    flags = cast("str | None", switches.get("cpu_16bit_units"))
    if flags is None:
        raise NotEnoughData("whether this CPU has 16-bit units could not be read when this was recorded")
    known = next((unit for unit in CPU_UNITS if unit in flags.split()), None)
    if flags and known is None:
        raise NotEnoughData(f"this CPU has 16-bit units ({flags}), but whether matrix work can use them is not known")
    return known


def _evidence(rows: pl.DataFrame) -> list[Evidence]:
    wide = rows.filter(pl.col("precision").is_in(["fp32", "tf32"])).sort("self_ns", descending=True)
    return [
        Evidence(
            event=row["name"],
            ts_ns=row["ts_ns"],
            dur_ns=row["dur_ns"],
            note=f"{row['precision']}; {duration(row['self_ns'])} in all such calls",
        )
        for row in wide.head(3).iter_rows(named=True)
    ]
