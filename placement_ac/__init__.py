"""placement-ac: OCM Placements become MultiKueue worker clusters."""
