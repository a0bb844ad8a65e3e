"""`placement-ac explain`: the steps that select a cluster or leave it out."""
