"""The cases of `../shared/cases`, each as its `expected.txt` says."""
