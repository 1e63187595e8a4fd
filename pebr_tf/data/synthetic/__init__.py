"""Synthetic click logs with known relevance.

A world (a catalogue and queries about it) is made from a spec; clicks are drawn from it chunk by
chunk; `write` puts all of it into a directory. The same spec always gives the same bytes.

  spec = SyntheticSpec(items=20_000, queries=8_000, clicks=300_000, seed=0, noise=0.05)
  world = make_world(spec)
  world.queries.texts[0], world.queries.relevant(0)
  for table in click_chunks(world, spec):
    ...
"""

from pebr_tf.data.synthetic.clicks import click_chunks
from pebr_tf.data.synthetic.spec import SyntheticSpec, config
from pebr_tf.data.synthetic.world import World, make_world
from pebr_tf.data.synthetic.writer import write
