"""The page of `placement-ac ui`, and its data: what `status` and `timeline` say."""
