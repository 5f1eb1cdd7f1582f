"""A Flower app that moves signed release files."""
