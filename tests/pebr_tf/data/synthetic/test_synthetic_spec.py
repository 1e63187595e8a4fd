"""SyntheticSpec accepts its ranges and names the requirement when a value is outside."""

import dataclasses
import math
import re

import pytest

from pebr_tf.data.synthetic import SyntheticSpec
from pebr_tf.errors import UserError


def test_defaults_are_the_demo() -> None:
    assert dataclasses.asdict(SyntheticSpec()) == {
        "items": 20_000,
        "queries": 8_000,
        "clicks": 300_000,
        "seed": 0,
        "noise": 0.05,
    }


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("items", 5, "--items must be an integer from 100 to 50000000. Received: 5."),
        ("items", 50_000_001, "--items must be an integer from 100 to 50000000."),
        ("items", 200.0, "--items must be an integer from 100 to 50000000. Received: 200.0."),
        ("items", "200", "--items must be an integer from 100 to 50000000. Received: '200'."),
        ("queries", 0, "--queries must be an integer from 1 to 10000000. Received: 0."),
        ("queries", True, "--queries must be an integer from 1 to 10000000. Received: True."),
        ("clicks", 0, "--clicks must be an integer from 1 to 10000000000. Received: 0."),
        ("seed", -1, "--seed must be an integer from 0 to 9223372036854775807. Received: -1."),
        ("noise", 1.0, "--noise must be a number from 0 to below 1. Received: 1.0."),
        ("noise", -0.1, "--noise must be a number from 0 to below 1. Received: -0.1."),
        ("noise", math.nan, "--noise must be a number from 0 to below 1. Received: nan."),
        ("noise", "0.1", "--noise must be a number from 0 to below 1. Received: '0.1'."),
    ],
)
def test_a_bad_value_is_named(name: str, value: object, text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text)):
        SyntheticSpec(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [("items", 100), ("items", 50_000_000), ("queries", 1), ("clicks", 1), ("noise", 0)],
)
def test_the_ends_of_the_ranges_are_inside(name: str, value: int) -> None:
    assert getattr(SyntheticSpec(**{name: value}), name) == value
