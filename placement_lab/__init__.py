"""An API server of Kubernetes in a process, stand-ins for OCM, Kueue and workers, and the demo."""
