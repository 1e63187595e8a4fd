"""`pebr query`: what a person and a program get to read."""

import json
from functools import partial

import pytest
from pebr_command import invoke

from pebr_tf.errors import UserError
from pebr_tf.release.release import find_release
from serving.cli.query import query

run = partial(invoke, query)


def test_prints_a_header_and_a_table_a_query(releases, retriever):
    result = run("--release", releases, "--top-k", 7, "--limit", 3, "red phone", "white cable 3")
    first, second = result.output.split("\n\n")
    header, *rows, more = first.splitlines()
    assert header == "red phone  head · 7 items"
    answer = retriever.retrieve(["red phone"], "top_k", 7).rows(0, 3)
    assert [row.split(None, 3) for row in rows] == [
        [str(rank), f"{row['score']:.3f}", row["item_id"], row["title"].ljust(len(row["title"]))]
        for rank, row in enumerate(answer, start=1)
    ]
    assert more == "4 more"
    assert second.splitlines()[0] == "white cable 3  tail · 7 items"
    assert second.splitlines()[1].split()[1] == "1.000"


def test_the_header_says_what_the_list_promises(releases, retriever):
    queries = ("phone", "qq phone", "red\x1b[31m\nphone [bold]")
    output = run("--release", releases, "--recall", 0.75, "--limit", 0, *queries).output
    known, unfamiliar, steering = (text.splitlines()[0] for text in output.split("\n\n"))
    assert known.startswith("phone  torso · ")
    assert "cosine from 0." in known
    (expected,) = retriever.retrieve(["phone"], "recall", 0.75).expected_recall
    assert known.endswith(f"expected to keep {expected:.0%} of the relevant")
    assert unfamiliar.endswith("cosine from 0.910 · unfamiliar: no recall is expected")
    # Text cannot steer a terminal.
    assert steering.startswith("red [31m phone [bold]  tail · ")
    assert "cut by the limit" in run("--release", releases, "--score=-1", "phone").output


def test_json_lines_from_a_release_with_queries_from_standard_input(releases, retriever):
    release = find_release(releases)
    result = run("--release", release, "--json", "--limit", 2, "-", input="phone\n\n 手机 \n")
    lines = [json.loads(line) for line in result.output.splitlines()]
    assert [line["query"] for line in lines] == ["phone", "手机"]
    answer = retriever.retrieve(["phone"])
    assert lines[0] == {
        "query": "phone",
        "knob": "recall",
        "value": 0.9,
        "stratum": "torso",
        "count": int(answer.items.counts[0]),
        "threshold": float(answer.items.thresholds[0]),
        **{
            name: float(getattr(answer.encoded, name)[0])
            for name in ("tau", "alpha", "beta", "level")
        },
        "level_source": "probe",
        "expected_recall": float(answer.expected_recall[0]),
        "truncated": False,
        "unfamiliar": False,
        "notes": ["recall 0.9 returns 44 items per query on average, 21.9% of the 200 items."],
        "items": answer.rows(0, 2),
    }
    (line,) = run("--release", release, "--json", "--score=-1", "phone").output.splitlines()
    assert json.loads(line)["threshold"] is None
    assert json.loads(line)["expected_recall"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["  "], r"a query must be a text that is not blank\. Received: '  '"),
        (["-"], r"standard input must hold one query per line\. Received: nothing"),
        (["--recall", "0.9", "--top-k", "3", "phone"], r"Received: --recall, --top-k\."),
    ],
)
def test_mistakes_are_one_sentence(releases, arguments, message):
    with pytest.raises(UserError, match=message):
        run("--release", releases, *arguments)
