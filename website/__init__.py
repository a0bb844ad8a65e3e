"""What makes the documentation site of `docs/`: see `mkdocs.yml`."""
