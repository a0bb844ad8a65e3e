"""`placement-ac graph`: nodes and edges, their layout, and how they are drawn."""
