"""Pusher: writes a blessed query model, its index and its cut-off out as one release."""
