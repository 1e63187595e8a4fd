"""Retries stay a share of the requests."""

import threading

from serving.retry_budget import RetryBudget


def test_in_the_long_run_retries_are_the_share():
    budget = RetryBudget(share=0.1, capacity=10)
    granted = 0
    for _ in range(1_000):
        budget.request()
        granted += budget.retry()
    # Ten that were saved up, less the share of the first request, which a full bucket has no room
    # for, and one for each ten requests after it.
    assert granted == 10 + 99


def test_nothing_is_saved_beyond_the_capacity():
    budget = RetryBudget(share=0.5, capacity=3)
    for _ in range(100):
        budget.request()
    assert [budget.retry() for _ in range(5)] == [True, True, True, False, False]


def test_threads_share_it():
    budget = RetryBudget(share=0, capacity=100)
    granted = []

    def spend():
        granted.extend(budget.retry() for _ in range(50))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 100
