"""Logs of an experiment whose lift is known; `python ab_logs.py FILE` writes the one of the docs.

A user has a rate of searches a session (Gamma), an inclination to click on a search and one to
order on a click (both Beta), the same before the test and during it. A treatment multiplies the
inclination to click: the true lift of clicks/searches and of orders/searches is the one given.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from pebr_tf.ab import Users

# Leaves the inclination to click below 1 for lifts up to a quarter.
MOST_INCLINED = 0.8
MOST_SESSIONS = 9


def draw_rows(rng, lifts, arms, sessions):
    """Columns of a log with one row per session: what the user did in it, and before the test.

    `lifts` [A] are the true ones of the arms, `arms` [U] and `sessions` [U] those of each user.
    """
    users = len(arms)
    rate = rng.gamma(1.5, 2.0, users)
    inclined = MOST_INCLINED * rng.beta(1.5, 3.0, users)
    ordering = rng.beta(1.0, 9.0, users)
    searches_before = rng.poisson(rate * 4)
    clicks_before = rng.binomial(searches_before, inclined)
    user = np.repeat(np.arange(users), sessions)
    searches = rng.poisson(rate[user]) + 1
    clicks = rng.binomial(searches, (inclined * (1 + np.asarray(lifts)[arms]))[user])
    return {
        "user": user,
        "searches": searches,
        "clicks": clicks,
        "orders": rng.binomial(clicks, ordering[user]),
        "searches_before": searches_before[user],
        "clicks_before": clicks_before[user],
    }


def draw_users(rng, lifts, users):
    """Users of some sessions each, in arms a, b, ... of equal chance."""
    arms = rng.integers(len(lifts), size=users)
    sessions = rng.integers(1, MOST_SESSIONS + 1, users)
    rows = draw_rows(rng, lifts, arms, sessions)
    first = np.cumsum(sessions) - sessions
    return Users(
        names=tuple("abcdefgh"[: len(lifts)]),
        ids=pa.array(np.arange(users)).cast(pa.string()),
        arms=arms,
        rows=sessions,
        totals={
            name: np.bincount(rows["user"], rows[name]) for name in ("searches", "clicks", "orders")
        },
        past={
            name: rows[name][first].astype(np.float64)
            for name in ("searches_before", "clicks_before")
        },
        crossing=0,
    )


def one_row_each(arms, totals, past=None):
    """Users of one row each in the arms a and b, from [U] places of arms and [U] totals."""
    rows = np.ones(len(arms), np.int64)
    return Users(("a", "b"), None, arms, rows, totals, past or {}, crossing=0)


def draw_log(seed, users, names, lifts):
    """A log with the arm of each row by name, its rows in no order."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(len(names), size=users)
    rows = draw_rows(rng, lifts, arms, rng.integers(1, MOST_SESSIONS + 1, users))
    order = rng.permutation(len(rows["user"]))
    named = np.array(names)[arms[rows["user"]]]
    return pa.table({"arm": named[order], **{name: each[order] for name, each in rows.items()}})


if __name__ == "__main__":
    log = draw_log(0, 40_000, ["control", "treatment"], [0.0, 0.03])
    pyarrow.parquet.write_table(log, Path(sys.argv[1]))
