"""The command line: one subcommand per file in ``commands``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process.

    Everything slipstream raises on purpose is told here, once, in one line: exit code 2, no traceback.
    """
    from slipstream.cli.application import application
    from slipstream.model import SlipstreamError

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal without these characters shows question marks instead of ending in an error.
            stream.reconfigure(errors="replace")
    try:
        application()(prog_name="slipstream")
    except SlipstreamError as error:
        print(f"slipstream: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        # A defect: its traceback is what a report needs, but Python's own status 1 means "findings" here.
        sys.excepthook(*sys.exc_info())
        print("slipstream: this is a defect of slipstream; please report it with the lines above", file=sys.stderr)
        sys.exit(2)
    sys.exit(0)
