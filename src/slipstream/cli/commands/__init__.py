"""One subcommand per file; each has a function ``register(app)``."""
