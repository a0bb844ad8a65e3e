"""The build of the documentation site of `docs/`: see `mkdocs.yml`."""
