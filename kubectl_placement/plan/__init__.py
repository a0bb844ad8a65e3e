"""`placement-ac plan`: the effect of manifests before they are applied."""
