"""Reads out A/B tests: rates and lifts by arm, clustered by user, with CUPED and checks."""

from pebr_tf.ab.analysis import Analysis, analyse
from pebr_tf.ab.console import print_analysis
from pebr_tf.ab.metric import DEFAULT_COLUMNS, Metric, default_metrics, named_metrics, with_past
from pebr_tf.ab.users import Users, columns_of, read_users
