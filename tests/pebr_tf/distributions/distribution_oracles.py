"""Independent oracle of the laws: mpmath quadrature, sharing no formula with the library.

Nothing here knows of mixtures, closed forms, incomplete beta functions or float64.
"""

import functools
import itertools

import mpmath as mp

mp.mp.dps = 25


class Oracle:
    """The law on z in [0, 1] with density z^(alpha - 1) * (1 - z)^(beta - 1) * exp(2 z / tau).

    tau = infinity is the Beta law, alpha = beta = 1 the truncated exponential. Near a singular end
    the substitution z = y^(1 / alpha), or its mirror, takes the singularity away; elsewhere the
    interval is cut into pieces that grow geometrically away from the mode.
    """

    def __init__(self, alpha, beta, tau=mp.inf):
        self.alpha, self.beta = mp.mpf(alpha), mp.mpf(beta)
        self.rate = 2 / mp.mpf(tau)
        self._mode, self._width = self._mode_and_width()
        self._scale = self._log_density(self._mode)

    def cdf(self, s):
        """P(x < s) for a cosine s."""
        z = (1 + mp.mpf(s)) / 2
        if z <= 0:
            return mp.mpf(0)
        if z >= 1:
            return mp.mpf(1)
        if z <= self._mode:
            return self._integral(mp.mpf(0), z) / self._normaliser
        return 1 - self._integral(z, mp.mpf(1)) / self._normaliser

    def log_prob(self, s):
        """Log density with respect to the cosine s."""
        z = (1 + mp.mpf(s)) / 2
        return self._log_density(z) - self._scale - mp.log(2 * self._normaliser)

    def _log_density(self, z):
        return (self.alpha - 1) * mp.log(z) + (self.beta - 1) * mp.log(1 - z) + self.rate * z

    def _mode_and_width(self):
        """Of z^alpha * (1 - z)^beta * exp(rate * z), whose highest point is always inside."""
        a, b, k = self.alpha, self.beta, self.rate
        if k == 0:
            mode = a / (a + b)
        else:
            half = (k - a - b) / (2 * k)
            mode = half + mp.sqrt(half**2 + a / k)
        return mode, 1 / mp.sqrt(a / mode**2 + b / (1 - mode) ** 2)

    @functools.cached_property
    def _normaliser(self):
        return self._integral(mp.mpf(0), mp.mpf(1))

    def _integral(self, low, high):
        points = {low, high, self._mode, mp.mpf(1) / 2}
        for power in range(15):
            step = self._width * mp.mpf(4) ** power
            points |= {self._mode - step, self._mode + step}
        if self.alpha < 2:
            points |= {mp.mpf(10) ** -power for power in range(1, 8)}
        if self.beta < 2:
            points |= {1 - mp.mpf(10) ** -power for power in range(1, 8)}
        cuts = sorted(point for point in points if low <= point <= high)
        return mp.fsum(self._piece(left, right) for left, right in itertools.pairwise(cuts))

    def _piece(self, left, right):
        if left == 0:

            def from_left(y):
                z = y ** (1 / self.alpha)
                return mp.e ** ((self.beta - 1) * mp.log(1 - z) + self.rate * z - self._scale)

            return mp.quad(from_left, [0, right**self.alpha]) / self.alpha
        if right == 1:

            def from_right(y):
                rest = y ** (1 / self.beta)
                log_value = (self.alpha - 1) * mp.log(1 - rest) + self.rate * (1 - rest)
                return mp.e ** (log_value - self._scale)

            return mp.quad(from_right, [0, (1 - left) ** self.beta]) / self.beta

        def inside(z):
            return mp.e ** (self._log_density(z) - self._scale)

        return mp.quad(inside, [left, right], method="gauss-legendre")
