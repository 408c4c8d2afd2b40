"""Every error slipstream raises on purpose.

::

    SlipstreamError
    ├── BadInput (ValueError)              what the user named cannot be used; the CLI exits 2
    │   ├── MissingInput (FileNotFoundError)   nothing is there
    │   └── NotATrace                          something is there, but no complete event
    ├── CannotStart (RuntimeError)         a job could not be started; the CLI exits 2
    ├── MissingDependency (ImportError)    an optional package is needed for this
    └── NotEnoughData (LookupError)        a question the recording cannot answer

A message says what happened, where, and the next step, in one or two sentences.
"""


class SlipstreamError(Exception):
    """Root of the tree: catching it catches everything slipstream raises on purpose."""


class BadInput(SlipstreamError, ValueError):
    """What the user named cannot be used."""


class MissingInput(BadInput, FileNotFoundError):
    """Nothing is there under the given path."""


class NotATrace(BadInput):
    """Something is there, but it holds not one complete event."""


class CannotStart(SlipstreamError, RuntimeError):
    """A job could not be started at all (the job's own failure is not an error of slipstream)."""


class MissingDependency(SlipstreamError, ImportError):
    """An optional package is needed for what was asked."""


class NotEnoughData(SlipstreamError, LookupError):
    """A question this recording cannot answer; the message says what to record.

    Raised instead of returning zero or an empty list, which would read as an answer.
    """
