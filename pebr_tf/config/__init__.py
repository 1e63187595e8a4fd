"""The one typed configuration: `Config`, its sections, and the error that rejects a bad one."""

from pebr_tf.config.corpus import Data, Features, Split, Strata
from pebr_tf.config.error import ConfigError
from pebr_tf.config.model import Loss, Towers, Training
from pebr_tf.config.retrieval import Cutoff, Evaluation, Gates, Index
from pebr_tf.config.root import TOWER_SECTIONS, Config
from pebr_tf.config.runs import Cloud, Dataflow, Kubeflow, Machine, Pipeline, Resources, TrainingJob
from pebr_tf.config.serving import Batching, Limits, Serving, TfServing, Tls
from pebr_tf.config.setting import AUTO
