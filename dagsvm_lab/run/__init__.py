"""Running notebooks: the runner, clean copies, the command line, the bench."""
