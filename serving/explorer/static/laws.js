// The maths of the page; derived in docs/maths.md.

// Below this z the logarithm goes on as its tangent, as in `pebr_tf.distributions.logit`.
const UNIT_EPSILON = 1e-4;

/** The logarithm of z = (1 + cosine) / 2. */
export function logUnit(cosine) {
  const z = (1 + cosine) / 2;
  const held = Math.max(z, UNIT_EPSILON);
  return Math.log(held) + (z - held) / UNIT_EPSILON;
}

/** The logarithm of relevance, up to a constant of the query: what its law says of a cosine. */
export function logit(data, cosine) {
  return (data.family === "beta" ? logUnit(cosine) : cosine) / data.tau;
}

/** Relevance of an item at a cosine, with that of the best item as 1. */
export function relevance(data, cosine) {
  return Math.exp(logit(data, cosine) - logit(data, best(data)));
}

/** The cosine of the best item; 1 where there is none. */
export function best(data) {
  return data.items.length ? data.items[0].score : 1;
}

/** Density of the law of the background at cosines, whose integral over [-1, 1] is 1. */
export function backgroundDensity(data, cosines) {
  const { background_alpha: alpha, background_beta: beta } = data;
  const logDensity = (cosine) => {
    const z = Math.min(Math.max((1 + cosine) / 2, 1e-9), 1 - 1e-9);
    return (alpha - 1) * Math.log(z) + (beta - 1) * Math.log1p(-z);
  };
  // Normalised by the middle of many thin slices, which needs no special function.
  const slices = 2000;
  const logs = Array.from({ length: slices }, (_, at) => logDensity((2 * at + 1) / slices - 1));
  const peak = Math.max(...logs);
  const total = logs.reduce((sum, value) => sum + Math.exp(value - peak), 0) * (2 / slices);
  return cosines.map((cosine) => Math.exp(logDensity(cosine) - peak) / total);
}

/** The places in `data.items` of the list at a stop, as far as items are loaded. */
export function listed(data, stop) {
  const missed = new Set(stop.missed);
  const places = [];
  for (let at = 0; at < data.items.length && places.length < stop.count; at += 1) {
    if (!missed.has(at)) places.push(at);
  }
  return places;
}

/** The cosine where a list ends: its threshold, or its last item where ranks end it. */
export function cutOf(data, stop) {
  if (stop.threshold !== null && !(stop.truncated && stop.count >= data.limit)) return stop.threshold;
  const places = listed(data, stop);
  if (places.length === stop.count && places.length) return data.items[places.at(-1)].score;
  return stop.threshold;
}

/** The place of the stop whose value, by `of`, is nearest to one. */
export function nearest(stops, value, of = (stop) => stop.value) {
  let found = 0;
  stops.forEach((stop, at) => {
    if (Math.abs(of(stop) - value) < Math.abs(of(stops[found]) - value)) found = at;
  });
  return found;
}
