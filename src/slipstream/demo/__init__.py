"""The bundled training job: an ordinary script that knows nothing of slipstream and is imported by nobody."""
