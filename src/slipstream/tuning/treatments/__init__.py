"""One treatment per file; discovery finds them (see ``tuning.registry``)."""
