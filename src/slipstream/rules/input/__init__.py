"""Rules of the family input."""
