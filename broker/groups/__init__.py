"""Consumer groups: their records in `__consumer_offsets` and what their members say in them."""
