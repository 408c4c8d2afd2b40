"""Rules of the family compiler: work that a fused kernel or a compiler would not do."""
