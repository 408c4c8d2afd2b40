"""One format per file; the file's name is the format's."""
