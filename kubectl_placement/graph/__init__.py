"""The graph of checks: nodes and edges, and Mermaid."""
