"""Compares the project with what others published, in `../shared`: CRDs, recordings, cases of users."""
