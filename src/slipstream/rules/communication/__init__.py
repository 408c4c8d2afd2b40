"""Rules of the family communication."""
