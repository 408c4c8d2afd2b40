"""TensorBoard: a tab with the report of every recording below the log directory.

TensorBoard finds the plugin by its entry point (``tensorboard_plugins``). The tab shows the same page that
``slipstream report`` writes: there is no second front end.
"""

import importlib.resources
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboard.plugins import base_plugin
from werkzeug import Request, Response

_PAGES = 8
"""Pages that are kept; one is about 5 MB."""
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "frame-ancestors 'self'"
)


_SCALARS = {
    "dur_ns": ("step_ms", 1e-6),
    "loader_ns": ("loader_wait_ms", 1e-6),
    "backward_ns": ("backward_ms", 1e-6),
    "optimizer_ns": ("optimizer_ms", 1e-6),
    "rss_bytes": ("resident_memory_mb", 1e-6),
    "device_allocated_bytes": ("device_memory_mb", 1e-6),
}
"""Columns of ``job_steps``: name of the scalar, and what a value is multiplied by."""


class SlipstreamPlugin(base_plugin.TBPlugin):
    """The SLIPSTREAM tab.

    Args:
        context: TensorBoard's; its ``logdir`` is looked through for traces that ``tensorboard_trace_handler`` wrote
            and for run folders.
    """

    plugin_name = "slipstream"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self._logdir = str(context.logdir or "")
        self._pages: OrderedDict[tuple[str, float], str] = OrderedDict()
        self._making = threading.Lock()

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """What is served below ``data/plugin/slipstream``."""
        return {"/index.js": self._script, "/traces": self._traces, "/report": self._report}

    def is_active(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._names())

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Slipstream", disable_reload=False)

    def page(self, name: str) -> str:
        """The report of one recording as HTML.

        Args:
            name: as ``/traces`` lists it.
        Raises:
            KeyError: there is none of that name.
            BadInput: it holds nothing that can be analysed.
        """
        from slipstream.api import diagnose, load
        from slipstream.reports import render
        from slipstream.store import Trace

        if name not in self._names():
            raise KeyError(name)
        path = self._logdir if name == "." else f"{self._logdir.rstrip('/')}/{name}"
        key = (name, _changed(path))
        with self._making:  # one at a time: a diagnosis uses all cores
            if key not in self._pages:
                loaded = load(path)
                traces = [loaded] if isinstance(loaded, Trace) else loaded
                self._pages[key] = render([diagnose(trace) for trace in traces], "html")
                while len(self._pages) > _PAGES:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(key)
            return self._pages[key]

    def _names(self) -> list[str]:
        from slipstream.ingest.location import names_under
        from slipstream.model import SlipstreamError

        try:
            return names_under(self._logdir) if self._logdir else []
        except SlipstreamError:  # an address that cannot be reached now: TensorBoard asks again
            return []

    def _script(self, environ: Any, start_response: Any) -> Any:
        code = importlib.resources.files("slipstream.integrations").joinpath("tensorboard.js").read_bytes()
        return _respond(code, "text/javascript")(environ, start_response)

    def _traces(self, environ: Any, start_response: Any) -> Any:
        return _respond(json.dumps(self._names()).encode(), "application/json")(environ, start_response)

    def _report(self, environ: Any, start_response: Any) -> Any:
        from slipstream.model import SlipstreamError

        name = Request(environ).args.get("trace", "")
        try:
            answer = _respond(self.page(name).encode(), "text/html")
        except KeyError:
            answer = _respond(b"There is no such recording below the log directory.", "text/plain", 404)
        except SlipstreamError as error:
            answer = _respond(str(error).encode(), "text/plain", 422)
        return answer(environ, start_response)


def _respond(body: bytes, kind: str, status: int = 200) -> Response:
    answer = Response(body, status=status, content_type=f"{kind}; charset=utf-8")
    answer.headers["X-Content-Type-Options"] = "nosniff"
    if kind == "text/html":
        answer.headers["Content-Security-Policy"] = _POLICY
    return answer


def _changed(path: str) -> float:
    """When a recording was last written; remote ones count as unchanged."""
    place = Path(path)
    files = place.rglob("*") if place.is_dir() else (place,)
    return max((file.stat().st_mtime for file in files if file.exists()), default=0.0)


def write_scalars(path: str | Path, logdir: str | Path) -> int:
    """Write what a run folder measured of every step as TensorBoard scalars.

    Args:
        path: run folder of ``slipstream run``; of several ranks the first.
        logdir: for the event file; below TensorBoard's log directory.
    Returns:
        How many steps were written.
    Raises:
        BadInput: nothing there, or no step was measured.
    """
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from slipstream.api import load
    from slipstream.model import BadInput
    from slipstream.store import Trace

    loaded = load(path)
    trace = loaded if isinstance(loaded, Trace) else loaded[0]
    if not trace.has("job_steps"):
        raise BadInput(f"{path} holds no measured steps: scalars are written of run folders")
    steps = trace.table("job_steps").sort("number")
    origin = int(trace.source.origin_ns or 0)
    writer = EventFileWriter(str(logdir))
    try:
        for row in steps.iter_rows(named=True):
            values = [
                Summary.Value(tag=f"slipstream/{tag}", simple_value=row[column] * factor)
                for column, (tag, factor) in _SCALARS.items()
                if row[column] is not None
            ]
            end = (origin + row["start_ns"] + row["dur_ns"]) / 1e9
            writer.add_event(Event(wall_time=end, step=row["number"], summary=Summary(value=values)))
    finally:
        writer.close()
    return len(steps)
