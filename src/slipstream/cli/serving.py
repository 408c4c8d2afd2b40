"""Hands one document to the Perfetto page in the user's own browser."""

import gzip
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event

from slipstream.model import BadInput

PAGE = "https://ui.perfetto.dev"
PORT = 9001
"""The only port on this machine from which that page accepts documents."""
NAME = "slice.json.gz"


def address(port: int) -> str:
    """Where the browser is to go: the page, told to fetch the document from this machine."""
    return f"{PAGE}/#!/?url=http://127.0.0.1:{port}/{NAME}"


def serve(document: bytes, port: int, ready: Event | None = None) -> None:
    """Serve a document on 127.0.0.1 until it has been fetched once.

    Args:
        document: JSON.
        port: where to listen.
        ready: set once it listens.
    Raises:
        BadInput: the port is taken.
    """
    body = gzip.compress(document, compresslevel=1)
    fetched = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] != f"/{NAME}":
                self.send_error(404)
                return
            self.send_response(200)
            self._allow()
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            fetched.set()

        def do_OPTIONS(self) -> None:
            self.send_response(204)
            self._allow()
            self.end_headers()

        def _allow(self) -> None:
            self.send_header("Access-Control-Allow-Origin", PAGE)
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.send_header("Cache-Control", "no-store")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    try:
        server = HTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise BadInput(
            f"port {port} of this machine cannot be used ({error.strerror}): close what uses it, or write with -o"
        ) from error
    with server:
        if ready is not None:
            ready.set()
        while not fetched.is_set():
            server.handle_request()
