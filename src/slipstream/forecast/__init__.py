"""What a fix would gain: edits of the dependency graph, replayed.

``replay_of`` prepares the window of a recording and says how far an unedited replay misses it; ``gain_of`` replays it
with edits. Nothing here knows a rule: rules name the edits.
"""

from slipstream.forecast.edits import Edit, cut_waits, on_threads, removing, scaled
from slipstream.forecast.gain import WORST_REPLAY_ERROR, ceiling_of, gain_of
from slipstream.forecast.replay import Replay, replay_of

__all__ = [
    "WORST_REPLAY_ERROR",
    "Edit",
    "Replay",
    "ceiling_of",
    "cut_waits",
    "gain_of",
    "on_threads",
    "removing",
    "replay_of",
    "scaled",
]
