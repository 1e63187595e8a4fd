// The maths of the page; derived in docs/maths.md.

// Below this z the logarithm continues as its tangent, as in `pebr_tf.distributions.logit`.
const UNIT_EPSILON = 1e-4;

/** The logarithm of z = (1 + cosine) / 2. */
export function logUnit(cosine) {
  const z = (1 + cosine) / 2;
  const held = Math.max(z, UNIT_EPSILON);
  return Math.log(held) + (z - held) / UNIT_EPSILON;
}

/** The logarithm of the relevance at a cosine, by the law of the query, up to a constant. */
export function logit(data, cosine) {
  return (data.family === "beta" ? logUnit(cosine) : cosine) / data.tau;
}

/** Relevance at a cosine, relative to that of the best item. */
export function relevance(data, cosine) {
  return Math.exp(logit(data, cosine) - logit(data, best(data)));
}

/** The cosine of the best item; 1 if there are no items. */
export function best(data) {
  return data.items.length ? data.items[0].score : 1;
}

/** Density of a Beta law at cosines, whose integral over [-1, 1] is 1. */
export function density(alpha, beta, cosines) {
  const logDensity = (cosine) => {
    const z = Math.min(Math.max((1 + cosine) / 2, 1e-9), 1 - 1e-9);
    return (alpha - 1) * Math.log(z) + (beta - 1) * Math.log1p(-z);
  };
  // Normalised with the midpoint rule, which needs no special function.
  const slices = 2000;
  const logs = Array.from({ length: slices }, (_, at) => logDensity((2 * at + 1) / slices - 1));
  const peak = Math.max(...logs);
  const total = logs.reduce((sum, value) => sum + Math.exp(value - peak), 0) * (2 / slices);
  return cosines.map((cosine) => Math.exp(logDensity(cosine) - peak) / total);
}

/** The indices in `data.items` of the list at a stop, as far as they are loaded. */
export function listedIndices(data, stop) {
  const missed = new Set(stop.missed);
  const indices = [];
  for (let at = 0; at < data.items.length && indices.length < stop.count; at += 1) {
    if (!missed.has(at)) indices.push(at);
  }
  return indices;
}

/** The cosine where a list ends: its threshold, or the score of its last item without one. */
export function endCosine(data, stop) {
  if (stop.threshold !== null && !(stop.truncated && stop.count >= data.limit)) return stop.threshold;
  const indices = listedIndices(data, stop);
  if (indices.length === stop.count && indices.length) return data.items[indices.at(-1)].score;
  return stop.threshold;
}

/** The index of the stop whose value, by `of`, is nearest to `value`. */
export function nearest(stops, value, of = (stop) => stop.value) {
  let found = 0;
  stops.forEach((stop, at) => {
    if (Math.abs(of(stop) - value) < Math.abs(of(stops[found]) - value)) found = at;
  });
  return found;
}
