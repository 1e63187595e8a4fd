"""The table that ends a run in the terminal."""

from rich import box
from rich.table import Table
from rich.text import Text

from pebr_tf.metrics.results import PolicyResult
from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.report.formats import count, share
from pebr_tf.report.tables import MEASURES, ORACLE, best_figure, is_best
from pebr_tf.report.verdict import outcome


def summary_table(evaluation: ModelEvaluation) -> Table:
    """Precision and recall of each policy at each average k, in at most 80 characters.

    The best of each column is bold, the oracle last.
    """
    table = Table(
        title="Precision/recall on held-out clicks, at an average of k items per query",
        title_justify="left",
        caption=Text(outcome(evaluation)),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="",
        caption_style="green" if evaluation.blessed else "red",
        pad_edge=False,
    )
    table.add_column("policy", no_wrap=True, overflow="ellipsis")
    for k in evaluation.average_k:
        table.add_column(f"k = {count(k)}", justify="right", no_wrap=True)
    table.add_column("knob error", justify="right", min_width=7)
    policies = sorted(evaluation.policies, key=lambda policy: policy.name == ORACLE)
    best = {
        (k, measure): best_figure(policies, k, "overall", measure)
        for k in evaluation.average_k
        for measure in MEASURES
    }
    for policy, following in zip(policies, [*policies[1:], None], strict=True):
        table.add_row(
            Text(policy.title),
            *(_pair(policy, k, best) for k in evaluation.average_k),
            share(evaluation.calibration.error["overall"]) if policy.default else "",
            style="cyan" if policy.default else "dim" if policy.name == ORACLE else None,
            end_section=following is not None and following.name == ORACLE,
        )
    return table


def _pair(policy: PolicyResult, k: int, best: dict[tuple[int, str], float | None]) -> Text:
    text = Text()
    for measure in MEASURES:
        value = getattr(policy.at[k]["overall"], measure)
        if text:
            text.append("/")
        # Digits fill a column; the leading 0 is dropped.
        style = "bold" if is_best(policy, value, best[k, measure]) else ""
        text.append(share(value).removeprefix("0"), style=style)
    return text
