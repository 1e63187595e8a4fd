"""The two towers, their text features, and the heads and the threshold layer on top of them."""
