"""Whether a job still learns the same: what it computes, watched step by step and held against an envelope."""
