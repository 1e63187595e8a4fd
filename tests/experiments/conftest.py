"""What several files measure; do not write to it."""

import pytest


@pytest.fixture(scope="session")
def towers():
    from experiment_runs import random_towers

    return random_towers()


@pytest.fixture(scope="session")
def data():
    from small_logs import small_corpus

    return small_corpus()
