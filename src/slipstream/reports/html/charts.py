"""Figures of the report, as data for plotly; colours and fonts are the page's."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from slipstream.reports.html.timeline import Timeline
from slipstream.reports.names import short_name
from slipstream.reports.units import duration
from slipstream.store import Report

Figure = dict[str, Any]
COLORS = {
    "finding": "#d64545",
    "idle": "#e0a030",
    "kernel": "#2f8f6b",
    "collective": "#8a5cc2",
    "copy": "#3d7fd6",
    "set": "#7fa8d9",
    "op": "#4f8fb8",
    "runtime": "#9aa5b1",
}
_MOST_POINTS = 2_000
_MOST_MODULES = 600
_MOST_OPS = 300


def step_lengths(report: Report) -> Figure | None:
    """Every step: of a live job all of it with what it waited for, else the recorded ones."""
    if report.tables.has("job_steps") and report.tables["job_steps"].height > 1:
        return _job_steps(report.tables["job_steps"])
    steps = report.diagnosis.steps
    if len(steps) < 2:
        return None
    bar = {
        "type": "bar",
        "name": "step",
        "x": [step.number for step in steps],
        "y": [step.dur_ns / 1e6 for step in steps],
        "hovertemplate": "step %{x}: %{y:.3f} ms<extra></extra>",
        "marker": {"color": COLORS["op"]},
    }
    return {"data": [bar], "layout": {"xaxis": {"title": {"text": "step"}}, "yaxis": _axis("ms")}}


def _job_steps(job: pl.DataFrame) -> Figure:
    every = -(-job.height // _MOST_POINTS)
    rows = job.filter(pl.col("phase").cast(pl.String) != "places").with_columns(pl.col("number") // every * every)
    parts = {"data loader": "loader_ns", "backward": "backward_ns", "optimizer": "optimizer_ns"}
    rows = rows.with_columns(pl.col(column).fill_null(0) for column in parts.values()).with_columns(
        rest=pl.max_horizontal(0, pl.col("dur_ns") - sum(pl.col(column) for column in parts.values()))
    )
    means = rows.group_by("number").agg(pl.col(*parts.values(), "rest").mean()).sort("number")
    colors = (COLORS["idle"], COLORS["op"], COLORS["kernel"], COLORS["runtime"])
    data = [
        {
            "type": "bar",
            "name": name,
            "x": means["number"].to_list(),
            "y": [round(value / 1e6, 4) for value in means[column].to_list()],
            "hovertemplate": f"step %{{x}}, {name}: %{{y:.3f}} ms<extra></extra>",
            "marker": {"color": color, "line": {"width": 0}},
        }
        for (name, column), color in zip({**parts, "forward and the rest": "rest"}.items(), colors, strict=True)
    ]
    shapes = []
    recorded = job.filter(pl.col("phase").cast(pl.String) == "recorded")["number"]
    if recorded.len():
        ends = (int(str(recorded.min())) - 0.5, int(str(recorded.max())) + 0.5)
        shapes = [
            {"type": "rect", "xref": "x", "yref": "paper", "x0": ends[0], "x1": ends[1], "y0": 0, "y1": 1,
             "fillcolor": "rgba(128,128,128,0.18)", "line": {"width": 0}, "layer": "below"}
        ]  # fmt: skip
    layout = {
        "barmode": "stack",
        "bargap": 0,
        "xaxis": {"title": {"text": "step of the job; grey: recorded"}},
        "yaxis": _axis("ms"),
        "shapes": shapes,
    }
    return {"data": data, "layout": layout}


def bars(timeline: Timeline) -> Figure:
    """A step as bars, one trace for every kind."""
    names = list(dict.fromkeys(lane.name for lane in timeline.lanes))
    traces: dict[str, dict[str, Any]] = {}
    for lane in timeline.lanes:
        trace = traces.setdefault(
            lane.kind,
            {
                "type": "bar",
                "orientation": "h",
                "name": lane.kind,
                "base": [],
                "x": [],
                "y": [],
                "text": [],
                "customdata": [],
                "textposition": "none",
                "hovertemplate": "%{text}<br>%{customdata} at %{base:.4f} ms<extra>%{y}</extra>",
                "marker": {"color": COLORS[lane.kind], "line": {"width": 0}},
            },
        )
        trace["base"] += [round(start / 1e6, 6) for start in lane.start_ns]
        trace["x"] += [round(dur / 1e6, 6) for dur in lane.dur_ns]
        trace["y"] += [lane.name] * len(lane.start_ns)
        trace["text"] += lane.text
        trace["customdata"] += [duration(dur) for dur in lane.dur_ns]
    layout = {
        "barmode": "overlay",
        "bargap": 0.25,
        "dragmode": "pan",
        "xaxis": {
            "title": {"text": "ms from its beginning", "standoff": 16},
            "range": [0, timeline.length_ns / 1e6],
        },
        "yaxis": {"categoryorder": "array", "categoryarray": names[::-1], "fixedrange": True, "automargin": True},
        "height": 130 + 26 * len(names),
        "showlegend": True,
    }
    return {"data": list(traces.values()), "layout": layout, "zoom": True}


def modules(report: Report) -> Figure | None:
    """The tree of modules by the device's time, forward and backward; without a device by the host's."""
    if not report.tables.has("module_stats"):
        return None
    stats = report.tables["module_stats"].filter(pl.col("module").is_not_null())
    on_device = stats["device_self_ns"].null_count() < stats.height
    own = (
        pl.col("device_self_ns").fill_null(0) + pl.col("backward_device_self_ns").fill_null(0)
        if on_device
        else pl.col("host_self_ns").fill_null(0)
    )
    rows = stats.with_columns(own=own, module=pl.col("module").cast(pl.String), parent=pl.col("parent").cast(pl.String))
    if rows.height < 2 or not int(rows["own"].sum()):
        return None
    rows = rows.sort("depth", "module")
    while rows.height > _MOST_MODULES:
        deepest = rows["depth"].max()
        inside = rows.filter(pl.col("depth") == deepest)
        sums = inside.group_by("parent").agg(more=pl.col("own").sum())
        rows = rows.filter(pl.col("depth") != deepest)
        rows = rows.join(sums, left_on="module", right_on="parent", how="left")
        rows = rows.with_columns(own=pl.col("own") + pl.col("more").fill_null(0)).drop("more")
    trace = {
        "type": "icicle",
        "ids": rows["module"].to_list(),
        "labels": [str(name)[:48] for name in rows["name"].cast(pl.String).to_list()],
        "parents": [parent or "" for parent in rows["parent"].to_list()],
        "values": [value / 1e6 for value in rows["own"].to_list()],
        "branchvalues": "remainder",
        "hovertemplate": "%{id}<br>%{value:.3f} ms in the window<extra></extra>",
        "marker": {"colorscale": "Teal"},
        "maxdepth": 5,
    }
    return {"data": [trace], "layout": {"height": 460, "margin": {"t": 10, "l": 0, "r": 0, "b": 0}}}


def memory(report: Report) -> Figure | None:
    """Memory in use over time, by device."""
    if not report.tables.has("memory_timeline"):
        return None
    rows = report.tables["memory_timeline"]
    data = []
    for (kind, device), mine in rows.group_by("device_type", "device", maintain_order=True):
        every = -(-mine.height // _MOST_POINTS)
        peaks = (
            mine.with_row_index()
            .group_by(pl.col("index") // every, maintain_order=True)
            .agg(pl.col("ts_ns", "allocated_bytes").sort_by("allocated_bytes").last())
        )
        name = "CPU" if kind == 0 else f"device {device}"
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "line": {"shape": "hv", "width": 1.5},
                "x": [ts / 1e6 for ts in peaks["ts_ns"].to_list()],
                "y": [round(value / 2**20, 3) for value in peaks["allocated_bytes"].to_list()],
                "hovertemplate": f"{name}: %{{y:,.1f}} MiB at %{{x:.2f}} ms<extra></extra>",
            }
        )
    if not data:
        return None
    return {
        "data": data,
        "layout": {"xaxis": {"title": {"text": "ms from the beginning of the recording"}}, "yaxis": _axis("MiB")},
    }


def roofline(report: Report) -> Figure | None:
    """Ops against the two peaks: operations per byte, and operations per second."""
    if not report.tables.has("roofline"):
        return None
    rows = (
        report.tables["roofline"]
        .filter((pl.col("intensity") > 0) & (pl.col("attained_tflops") > 0))
        .sort("work_ns", descending=True)
    )
    rows = rows.head(_MOST_OPS)
    if not rows.height:
        return None
    most = float(str(rows["work_ns"].max()))
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": rows["intensity"].to_list(),
        "y": rows["attained_tflops"].to_list(),
        "text": [
            f"{short_name(str(row['name']), 50)} {row['input_dims']}<br>{duration(row['work_ns'])}, "
            + (f"{row['roofline_share'] * 100:.0f} % of what the device can do" if row["roofline_share"] else
               str(row["reason"] or "share not known"))
            for row in rows.iter_rows(named=True)
        ],
        "hovertemplate": "%{text}<br>%{x:.3g} operations per byte, %{y:.3g} Tflop/s<extra></extra>",
        "marker": {
            "size": [6 + 26 * (value / most) ** 0.5 for value in rows["work_ns"].to_list()],
            "color": COLORS["kernel"],
            "opacity": 0.6,
        },
    }  # fmt: skip
    layout = {
        "xaxis": {"type": "log", "title": {"text": "operations per byte"}},
        "yaxis": {"type": "log", "title": {"text": "10¹² operations per second"}},
    }
    return {"data": [trace], "layout": layout}


def figures(report: Report, timeline: Timeline | None) -> Mapping[str, Figure]:
    """All figures that this recording can fill, by the id of their place in the page."""
    found = {
        "steps": step_lengths(report),
        "timeline": bars(timeline) if timeline is not None else None,
        "modules": modules(report),
        "memory": memory(report),
        "roofline": roofline(report),
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def _axis(title: str) -> Figure:
    return {"title": {"text": title}, "rangemode": "tozero"}
