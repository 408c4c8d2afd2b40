"""Rules of the family launches."""
