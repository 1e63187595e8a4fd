"""Shape checks at the losses' boundary."""

import tensorflow as tf


class Shapes:
    """Holds tensors to layouts such as "B n", and equal letters to equal sizes.

    One instance serves one call of a loss: the first tensor that names a letter sets its size. Only
    what is static is checked, so that a graph with unknown sizes still traces.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}

    def require(self, name: str, tensor: tf.Tensor, *layouts: str) -> None:
        """Checks that a tensor has one of the layouts; an error calls it `name`.

        A layout has letters separated by spaces, one per dimension; "" is a scalar. At most one
        layout of each rank.

        Raises:
          ValueError: The rank fits no layout, or a size differs from an earlier tensor's.
        """
        if tensor.shape.rank is None:
            return
        for layout in layouts:
            letters = layout.split()
            if len(letters) == tensor.shape.rank and self._fits(letters, tensor):
                return
        required = " or ".join(f"[{', '.join(layout.split())}]" for layout in layouts)
        known = ", ".join(
            f"{letter} = {self._sizes[letter]}"
            for letter in sorted(set(" ".join(layouts).split()))
            if letter in self._sizes
        )
        raise ValueError(
            f"{name} must have the shape {required}{f' with {known}' if known else ''}. "
            f"Received: shape {tuple(tensor.shape)}."
        )

    def _fits(self, letters: list[str], tensor: tf.Tensor) -> bool:
        sizes = dict(self._sizes)
        for letter, size in zip(letters, tensor.shape, strict=True):
            if size is not None and sizes.setdefault(letter, size) != size:
                return False
        self._sizes = sizes
        return True
