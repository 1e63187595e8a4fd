"""pEBR-TF: retrieval models that know, for every query, how far to look.

Importing this package prepares the process for TensorFlow (see `pebr_tf.environment`) and imports
nothing heavy: TensorFlow is loaded by the submodule that needs it.
"""

from pebr_tf import environment

__version__ = "0.12.0"

environment.configure()
