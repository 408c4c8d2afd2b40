"""The part of the capture that records; loaded in the job's process once torch has been imported."""

from slipstream.capture.hooks import install_hooks
from slipstream.capture.job import Job
from slipstream.capture.recorder import Recorder


def install(job: Job) -> None:
    """Listen to the training from now on."""
    install_hooks(Recorder(job))
