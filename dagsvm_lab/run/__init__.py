"""Running notebooks: the runner, the command line, the bench."""
