"""Requests to Kubeflow Pipelines.

A request is built without a network and sent unchanged by the client of Kubeflow, so a dry run
shows exactly what would be sent, except for the id of the experiment: the client looks it up, and
creates the experiment if there is none.
"""

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebr_tf.config import Config
from pebr_tf.environment import is_verbose
from pebr_tf.errors import UserError, one_line
from pipeline.cron import Cron

TIMEOUT_SECONDS = 60
Request = dict[str, Any]


@dataclass(frozen=True)
class KubeflowConnection:
    """Kubeflow's own client, and the address that it talks to."""

    client: Any
    host: str


def connect(config: Config, host: str | None, token_file: Path | None) -> KubeflowConnection:
    """A connection to Kubeflow's API; host and token are those of the configuration unless given.

    Without a token, the client looks for credentials by itself.

    Raises:
      UserError: There is no host, token or client, or the host does not answer.
    """
    host = host or config.kubeflow.host
    if host is None:
        raise UserError(
            "--host or kubeflow.host must be the address of Kubeflow's API. Received: neither."
        )
    if token_file is None and config.kubeflow.token_file is not None:
        token_file = Path(config.kubeflow.token_file)
    token = None
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                "--token-file or kubeflow.token_file must be a readable file. "
                f"Received: {token_file}: {error}."
            ) from None
    try:
        from kfp import Client
    except ImportError:
        raise UserError(
            "The client of Kubeflow must be installed: pip install '.[pipeline,kubeflow]' in a "
            "clone. Received: none."
        ) from None
    if not is_verbose():
        logging.getLogger().setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = _answered(
            host,
            "the connection",
            lambda: Client(host, namespace=config.kubeflow.namespace, existing_token=token),
        )
    return KubeflowConnection(client, host.rstrip("/"))


def job_request(
    documents: list[dict[str, Any]], config: Config, name: str, cache: bool = True
) -> Request:
    """The request for one run of the documents of `compile_documents`."""
    if not cache:
        for task in documents[0]["root"]["dag"]["tasks"].values():
            task.pop("cachingOptions", None)
    spec, *platform = documents
    if platform:
        spec = {"pipeline_spec": spec, "platform_spec": platform[0]}
    request = {
        "display_name": name,
        "pipeline_spec": spec,
        "runtime_config": {"parameters": {}, "pipeline_root": config.pipeline.root},
    }
    if config.kubeflow.service_account is not None:
        request["service_account"] = config.kubeflow.service_account
    return request


def schedule_request(
    documents: list[dict[str, Any]], config: Config, cron: Cron, name: str
) -> Request:
    """The request for recurring runs: one at a time, and none for a time that has passed."""
    return {
        **job_request(documents, config, name),
        "trigger": {"cron_schedule": {"cron": cron.for_kubeflow()}},
        "max_concurrency": "1",
        "mode": "ENABLE",
        "no_catchup": True,
    }


def to_json(request: Request) -> str:
    return json.dumps(request, indent=2, sort_keys=True, ensure_ascii=False)


def submit(request: Request, config: Config, connection: KubeflowConnection) -> dict[str, str]:
    """Sends the request for a run; UserError if Kubeflow does not accept it."""
    run = _send(request, config, connection, "run")
    link = f"{connection.host}/#/runs/details/{run.run_id}"
    return {"name": run.run_id, "state": run.state, "link": link}


def schedule(request: Request, config: Config, connection: KubeflowConnection) -> dict[str, str]:
    """Sends the request for recurring runs; UserError if Kubeflow does not accept it."""
    recurring = _send(request, config, connection, "recurring_run")
    link = f"{connection.host}/#/recurringrun/details/{recurring.recurring_run_id}"
    return {"name": recurring.recurring_run_id, "state": recurring.status, "link": link}


def _send(request: Request, config: Config, connection: KubeflowConnection, kind: str) -> Any:
    create = getattr(getattr(connection.client, f"{kind}s"), f"create_{kind}")

    def send() -> Any:
        # The client prints a link.
        with contextlib.redirect_stdout(io.StringIO()):
            experiment = connection.client.create_experiment(
                config.pipeline.name, namespace=config.kubeflow.namespace
            )
        body = {**request, "experiment_id": experiment.experiment_id}
        created = create(body=body, _request_timeout=TIMEOUT_SECONDS)
        if getattr(created, f"{kind}_id") is None:
            # The client takes any page for an answer.
            raise ValueError(
                "an answer without an id, as from a login page; --token-file may be missing"
            )
        return created

    return _answered(connection.host, f"the {kind.replace('_', ' ')}", send)


def _answered(host: str, noun: str, call: Callable[[], Any]) -> Any:
    """The result of a call of the client; its errors as a UserError."""
    from kfp_server_api.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        return call()
    except ApiException as error:
        reason = f"{error.status} {_message(error)}"
    except (HTTPError, TimeoutError, ValueError) as error:
        reason = str(error)
    raise UserError(f"Kubeflow at {host} must accept {noun}. Received: {one_line(reason)}.")


def _message(error: Any) -> str:
    """The message in the body of an error of Kubeflow, or else its reason."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
