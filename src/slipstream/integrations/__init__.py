"""Hosts that slipstream is used from: one file each, importing its host only."""
