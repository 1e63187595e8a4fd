"""The evaluation of a run for people: an HTML page, a table in the terminal, one sentence."""

from pebr_tf.report.console import summary_table
from pebr_tf.report.page import write_report
from pebr_tf.report.verdict import next_steps, outcome, served
