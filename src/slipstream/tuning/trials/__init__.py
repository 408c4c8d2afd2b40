"""Copies of one job take turns step by step, with and without treatments; what each took is written down."""
