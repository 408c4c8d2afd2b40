"""HST002: switches for debugging are left on."""

from typing import ClassVar

import polars as pl

from slipstream.analysis.painting import covered
from slipstream.model import Dismissal, Finding, Fix
from slipstream.rules.memory.room import switches_of
from slipstream.rules.places import dominant_place
from slipstream.rules.rule import Rule
from slipstream.rules.scope import Scope, scope_of
from slipstream.rules.window_ops import LAUNCH, calls_of, costliest, pace_idle, window_ops, with_savings
from slipstream.rules.wording import duration, per_step, percent
from slipstream.store import Tables

CHECKS = r"^aten::(isnan|_is_any_true)$"
"""What anomaly detection calls on every gradient."""
ON = {
    "anomaly_mode": ("on", "anomaly detection (torch.autograd.set_detect_anomaly)"),
    "CUDA_LAUNCH_BLOCKING": ("1", "CUDA_LAUNCH_BLOCKING=1"),
    "HIP_LAUNCH_BLOCKING": ("1", "HIP_LAUNCH_BLOCKING=1"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("1", "PYTORCH_NO_CUDA_MEMORY_CACHING=1"),
    "TORCH_SHOW_CPP_STACKTRACES": ("1", "TORCH_SHOW_CPP_STACKTRACES=1"),
    "TORCH_DISTRIBUTED_DEBUG": ("DETAIL", "TORCH_DISTRIBUTED_DEBUG=DETAIL"),
    "TORCHDYNAMO_DISABLE": ("1", "TORCHDYNAMO_DISABLE=1"),
    "deterministic_algorithms": ("on", "deterministic algorithms"),
}
"""Switch, the value that slows things down, and what it is called."""
TRACERS = {"tracer": "a tracer (debugger, coverage)", "profile_function": "a profile function (sys.setprofile)"}
"""Switches that name who listens to every Python call, or none."""
SNIPPET = """\
torch.autograd.set_detect_anomaly(False)       # on only while a NaN is being hunted
torch.use_deterministic_algorithms(False)      # on only where runs must repeat bit by bit

# in the job's environment:
#   unset CUDA_LAUNCH_BLOCKING TORCH_SHOW_CPP_STACKTRACES TORCH_DISTRIBUTED_DEBUG"""


class DebugSwitchesLeftOn(Rule):
    """Debug switches left on.

    What it detects
    Anomaly detection at work: stacks formatted in the forward pass (Python rows) and gradients searched for NaN in
    the backward pass (ops). Their time is the cost. Other switches that the capture finds on (blocking launches, no
    caching of device memory, C++ stacks, distributed debugging, deterministic algorithms, a tracer or a profile
    function of another tool) are told without a cost, which only a run without them shows; blocking launches are
    judged by SYN003.

    Why it costs time
    Anomaly detection formats the Python stack for every op that autograd records, and reads every gradient once
    more; on a device the question whether there was a NaN is a synchronisation as well. Tracers are called for every
    Python function or line.

    Fix
    Switch it off, or on for single steps only.

    When not to
    While the bug is being hunted; deterministic algorithms where runs must repeat bit by bit.

    Source
    PyTorch Performance Tuning Guide, "Disable debugging APIs"; documentation of `torch.autograd.detect_anomaly`.
    """

    code = "HST002"
    name = "debug switches left on"
    needs: ClassVar = {"window": (), "idle_spans": ()}
    fix_class = "exact"

    def check(self, tables: Tables) -> list[Finding | Dismissal]:
        """Find anomaly detection at work, and switches that are on."""
        scope = scope_of(tables)
        found: list[Finding | Dismissal] = []
        ops = window_ops(tables, scope)
        nodes = ops.filter(pl.col("name").str.starts_with("autograd::engine::evaluate_function"))["event"]
        checks = ops.filter(pl.col("name").str.contains(CHECKS) & pl.col("parent").is_in(nodes.implode()))
        stacks = _stacks_ns(tables, scope)
        if checks.height:
            total = pl.col("device_total_ns" if scope.on_device else "dur_ns").fill_null(0)
            rows = with_savings(tables, scope, checks.with_columns(work_ns=total))
            cost = int(rows["cost_ns"].sum()) + stacks
            place = dominant_place(rows, "dur_ns")
            found.append(
                self.finding(
                    title=f"Anomaly detection is on and costs {percent(scope.share(cost))} of the time "
                    f"({duration(cost)} for {per_step(checks.height // 2, scope.steps, 'searched gradient')} and the "
                    "stacks of the forward pass)",
                    cost_ns=cost,
                    steps=scope.steps,
                    location=place,
                    evidence=costliest(rows),
                )
                if cost
                else self.dismissal(f"anomaly detection is on, while the {scope.worker} had other work")
            )
        on = [name for name in _on(tables) if not (checks.height and name.startswith("anomaly"))]
        if on:
            found.append(self.dismissal(f"left on: {', '.join(on)}; what it costs only a run without it shows"))
        return found

    def fix(self, finding: Finding) -> Fix:
        """Switch it off."""
        return Fix(
            summary="Switch anomaly detection and other debugging off, or on for single steps only. Keep deterministic "
            "algorithms where runs must repeat bit by bit.",
            snippet=SNIPPET,
        )


def _stacks_ns(tables: Tables, scope: Scope) -> int:
    """Time of the main thread in formatting stacks for autograd's nodes, as far as it is lost."""
    rows = calls_of(tables, r"torch/fx/traceback\.py$", "format_stack").filter(
        pl.col("thread").eq_missing(pl.lit(scope.main_thread))
        & pl.col("ts_ns").is_between(scope.start_ns, scope.end_ns, closed="left")
    )
    if not scope.on_device:
        return int(rows["dur_ns"].sum())
    start = rows["ts_ns"].to_numpy()
    return int(covered(pace_idle(tables, scope.main_thread, LAUNCH), start, start + rows["dur_ns"].to_numpy()).sum())


def _on(tables: Tables) -> list[str]:
    switches = switches_of(tables)
    values = {name: (switches.get(name) or "").strip() for name in (*ON, *TRACERS)}
    on = [called for name, (value, called) in ON.items() if values[name].upper() == value.upper()]
    return on + [f"{called}: {values[name]}" for name, called in TRACERS.items() if values[name] not in ("", "none")]
