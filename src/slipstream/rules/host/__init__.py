"""Rules of the family host."""
