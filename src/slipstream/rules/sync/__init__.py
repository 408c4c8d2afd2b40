"""Rules of the family sync."""
