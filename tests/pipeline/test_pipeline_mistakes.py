"""Arguments of the pipeline's commands that are rejected, before any file is read or compiled."""

import shlex

import pytest
from text_tables import cases

# {long} is a name of 129 characters.
MISTAKES = """\
compile --config examples/airflow.yaml --cron '0 3 * * *'
    --cron must come with --target airflow. Received: 0 3 * * *.
compile --config examples/airflow.yaml --target airflow --time-zone Europe/Berlin
    --time-zone must come with --cron. Received: Europe/Berlin.
compile --config examples/airflow.yaml --target airflow --span 2026-13-01
    --span must be a number, or a date such as 2026-11-16. Received: '2026-13-01'.
run --config nowhere --only Pusher --until Trainer
    --until must be left out with --only. Received: Trainer.
run --config nowhere --run-id night
    --run-id must come with --only. Received: night.
run --config nowhere --only Pusher --run-id 'last night'
    --run-id must be letters, digits and any of _.~:+-, as in Airflow. Received: 'last night'.
submit --target kubeflow --config examples/kubeflow.yaml
    The client of Kubeflow must be installed: pip install '.[pipeline,kubeflow]' in a clone.
    Received: none.
submit --target kubeflow --config examples/kubeflow.yaml --token-file nowhere
    --token-file or kubeflow.token_file must be a readable file. Received: nowhere: [Errno 2] No
    such file or directory: 'nowhere'.
submit --config nowhere --host http://here
    --host must come with --target kubeflow. Received: http://here.
submit --config nowhere --job-id Nightly
    --job-id must be at most 128 lower-case letters, digits and hyphens, a letter first. Received:
    'Nightly'.
schedule --target kubeflow --config nowhere --cron '0 3 * * *' --time-zone Europe/Berlin
    --time-zone must be left out with --target kubeflow, whose controller has one time zone for
    all schedules. Received: 'Europe/Berlin'.
schedule --config nowhere --cron '0 25 * * *'
    --cron must be five fields, minute hour day month weekday. Received: '0 25 * * *': hour 25 is
    not within 0 to 23.
schedule --config nowhere --cron '0 3 * * *' --name {long}
    --name must be 1 to 128 characters. Received: 129.
"""


@pytest.mark.usefixtures("same_code")
@pytest.mark.parametrize(("line", "sentence"), cases(MISTAKES))
def test_mistakes(line, sentence, pebr):
    assert pebr(*shlex.split(line.format(long="a" * 129))) == (2, "", f"pebr: {sentence}\n")
