"""One bottleneck per file: tables in, findings out; and the one path from tables to a diagnosis."""
