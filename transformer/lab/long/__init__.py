"""Long sequences: sparse and recurrent attention, half precision."""
