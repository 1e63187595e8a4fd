"""Requests to Vertex AI.

A request is built without credentials or network and sent unchanged, so a dry run shows exactly
what would be sent. The requests equal those of PipelineJob.submit and PipelineJobSchedule.create of
google-cloud-aiplatform. These are not called because the former also looks for the bucket, without
a timeout, and creates it if it does not exist.
"""

import json
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google.auth
from google.api_core.exceptions import GoogleAPIError
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import GoogleAuthError
from google.cloud.aiplatform import PipelineJob, gapic

from pebr_tf.config import Config
from pebr_tf.environment import is_verbose
from pebr_tf.errors import UserError, one_line
from pipeline.cron import Cron

# Vertex AI checks a specification within a few seconds.
TIMEOUT_SECONDS = 60
CONSOLE = "https://console.cloud.google.com/vertex-ai/locations"


def default_credentials() -> Credentials:
    """The application default credentials of this machine.

    Contacts only the metadata server of Google's machines, for at most a dozen seconds.

    Raises:
      UserError: There are no credentials, or their file is invalid.
    """
    if not is_verbose():
        logging.getLogger("google.auth").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            credentials, _ = google.auth.default()
    except GoogleAuthError as error:
        reason = str(error.args[0])
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The library assumes that the file holds an object with certain keys.
        reason = f"credentials that cannot be read, {type(error).__name__}: {error}"
    else:
        return credentials
    raise UserError(
        "Google Cloud credentials must be available: run gcloud auth application-default login, "
        "or set GOOGLE_APPLICATION_CREDENTIALS to a credentials file. "
        f"Received: {one_line(reason)}."
    )


def job_request(
    job: dict[str, Any], config: Config, job_id: str, cache: bool = True
) -> gapic.CreatePipelineJobRequest:
    """The request for one run of a job from `compile_job`; without `cache`, no task is cached."""
    pipeline_job = _pipeline_job(job, config, cache)
    pipeline_job.display_name = job["displayName"]
    return gapic.CreatePipelineJobRequest(
        parent=_parent(config), pipeline_job=pipeline_job, pipeline_job_id=job_id
    )


def schedule_request(
    job: dict[str, Any], config: Config, cron: Cron, name: str
) -> gapic.CreateScheduleRequest:
    """The request for scheduled runs; one that is due during another is skipped."""
    request = gapic.CreatePipelineJobRequest(
        parent=_parent(config), pipeline_job=_pipeline_job(job, config, cache=True)
    )
    schedule = gapic.Schedule(
        display_name=name,
        cron=cron.for_vertex(),
        max_concurrent_run_count=1,
        create_pipeline_job_request=request,
    )
    return gapic.CreateScheduleRequest(parent=_parent(config), schedule=schedule)


def to_json(request: Any) -> str:
    """A request as JSON, without default values, which are not sent."""
    return str(
        type(request).to_json(
            request,
            sort_keys=True,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=False,
        )
    )


def submit(
    request: gapic.CreatePipelineJobRequest, config: Config, credentials: Credentials
) -> dict[str, str]:
    """Sends the request for a run, without retries; UserError if Vertex AI does not accept it."""
    client = gapic.PipelineServiceClient(credentials=credentials, client_options=_options(config))
    return _accepted(client.create_pipeline_job, request, config, "job", "runs")


def schedule(
    request: gapic.CreateScheduleRequest, config: Config, credentials: Credentials
) -> dict[str, str]:
    """Sends the request for a schedule, without retries; UserError if it is not accepted."""
    client = gapic.ScheduleServiceClient(credentials=credentials, client_options=_options(config))
    return _accepted(client.create_schedule, request, config, "schedule", "schedules")


def _pipeline_job(job: dict[str, Any], config: Config, cache: bool) -> gapic.PipelineJob:
    with tempfile.TemporaryDirectory() as folder:
        # The library reads files only.
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        read = PipelineJob(
            display_name=job["displayName"],
            template_path=str(file),
            enable_caching=None if cache else False,
            project=config.cloud.project,
            location=config.cloud.region,
            credentials=AnonymousCredentials(),
        )
    return gapic.PipelineJob(
        pipeline_spec=read.pipeline_spec,
        runtime_config=read.runtime_config,
        labels=job["labels"],
        service_account=config.cloud.service_account,
        network=config.cloud.network,
    )


def _parent(config: Config) -> str:
    return f"projects/{config.cloud.project}/locations/{config.cloud.region}"


def _options(config: Config) -> dict[str, str]:
    return {"api_endpoint": f"{config.cloud.region}-aiplatform.googleapis.com"}


def _accepted(
    send: Callable[..., Any], request: Any, config: Config, noun: str, pages: str
) -> dict[str, str]:
    project, region = config.cloud.project, config.cloud.region
    try:
        answer = send(request=request, retry=None, timeout=TIMEOUT_SECONDS)
    except (GoogleAPIError, GoogleAuthError) as error:
        raise UserError(
            f"Vertex AI must accept the {noun} in {project}, {region}. Received: {_reason(error)}."
        ) from error
    number = answer.name.rpartition("/")[2]
    link = f"{CONSOLE}/{region}/pipelines/{pages}/{number}?project={project}"
    return {"name": answer.name, "state": answer.state.name, "link": link}


def _reason(error: Exception) -> str:
    """The message of an error, without machine-readable details."""
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    return one_line(str(error) if code is None else f"{int(code)} {message}")
