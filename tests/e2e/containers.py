"""Local stand-ins for Vertex AI and Kubeflow: run compiled tasks in order, one process each.

Commands, arguments and parameters come from the compiled pipeline. The stand-in chooses the paths
of artifacts and writes the ExecutorInput of each task.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pebr_process import python

STORE = "projects/1/locations/here/metadataStores/default/artifacts"


@dataclass
class Vertex:
    """The folder that jobs run in, and what each task printed."""

    folder: Path
    log: dict[str, str] = field(default_factory=dict)

    def run(self, job, name, cached=None, until=None):
        """Runs a job up to a task, without `cached` ones; returns the outputs of each task."""
        root = f"{job['runtimeConfig']['gcsOutputDirectory']}/1/{name}"
        return self.run_spec(job["pipelineSpec"], root, cached, until)

    def run_spec(self, spec, root, cached=None, until=None):
        """Runs the tasks of a PipelineSpec, whose artifacts are below `root`."""
        tasks = spec["root"]["dag"]["tasks"]
        outputs = {}
        for task in in_order(tasks):
            if cached and task in cached:
                outputs[task] = cached[task]
                continue
            component = spec["components"][tasks[task]["componentRef"]["name"]]
            executor = spec["deploymentSpec"]["executors"][component["executorLabel"]]
            inputs = self._inputs(tasks[task], outputs)
            outputs[task] = self._execute(
                task, component, executor["container"], inputs, tasks[task], f"{root}/{task}_7"
            )
            if task == until:
                break
        return outputs

    def _inputs(self, task, outputs):
        sources = {
            key: source["taskOutputArtifact"]
            for key, source in task.get("inputs", {}).get("artifacts", {}).items()
        }
        return {
            key: outputs[source["producerTask"]][source["outputArtifactKey"]]
            for key, source in sources.items()
        }

    def _execute(self, name, component, container, inputs, task, root):
        created = {
            key: self._new(definition["artifactType"], f"{root}/{key}")
            for key, definition in component["outputDefinitions"]["artifacts"].items()
        }
        parameters = {
            key: value["runtimeValue"]["constant"]
            for key, value in task["inputs"]["parameters"].items()
        }
        given = {
            "inputs": {
                "artifacts": {key: {"artifacts": found} for key, found in inputs.items()},
                "parameterValues": parameters,
            },
            "outputs": {
                "artifacts": {key: {"artifacts": [each]} for key, each in created.items()},
                "outputFile": self._output_file(root),
            },
        }
        if hook := container.get("lifecycle", {}).get("preCacheCheck"):
            self._process(f"{name} driver", [*hook["command"], *hook["args"]], given)
        command = [*container["command"], *container["args"]]
        self._launch(name, command, given)
        written = json.loads((self.folder / given["outputs"]["outputFile"]).read_text("utf-8"))
        for key, artifact in created.items():
            (reported,) = written["artifacts"][key]["artifacts"]
            assert reported["uri"] == artifact["uri"]
            assert reported.get("name") == artifact.get("name")
            artifact["metadata"] = reported.get("metadata", {})
        return {key: [self._stored(artifact)] for key, artifact in created.items()}

    def _output_file(self, root):
        return f"{root}/executor_output.json"

    def _launch(self, name, command, given):
        self._process(name, command, given)

    def _stored(self, artifact):
        """An output as the tasks that read it receive it."""
        return artifact

    def _new(self, kind, uri):
        return {"name": f"{STORE}/{hash(uri) % 10**12}", "type": kind, "uri": uri, "metadata": {}}

    def _process(self, name, command, given):
        interpreter, flag, module, *arguments = command
        assert (interpreter, flag) == ("python", "-m")
        text = json.dumps(given)
        arguments = [text if part == "{{$}}" else part for part in arguments]
        done = python(self.folder, module, *arguments)
        self.log[name] = done.out + done.err
        if done.code:
            raise TaskFailedError(name, self.log[name])


@dataclass
class KubeflowContainers(Vertex):
    """KFP's driver, whose artifacts have no type once stored, and launcher, which copies files.

    Attributes:
      copy: Copies a folder, with an S3 client, between `s3://...` and a local path.
    """

    copy: Callable[[str, str], None] = shutil.copytree

    def _new(self, kind, uri):
        return {"type": kind, "uri": uri}

    def _stored(self, artifact):
        assert None not in artifact["metadata"].values()
        return {"name": str(hash(artifact["uri"])), **artifact, "type": {}}

    def _output_file(self, root):
        # On the disk of the pod.
        return f"{self.folder}/pod/output_metadata.json"

    def _launch(self, name, command, given):
        pod = Path(given["outputs"]["outputFile"]).parent
        shutil.rmtree(pod, ignore_errors=True)
        pod.mkdir()
        read, written = (
            [artifact["uri"] for (artifact,) in _artifacts(side)] for side in given.values()
        )
        try:
            for uri in read:
                self.copy(uri, local(uri))
            for uri in written:
                Path(local(uri)).parent.mkdir(parents=True, exist_ok=True)
            self._process(name, command, given)
            for uri in written:
                self.copy(local(uri), uri)
        finally:
            # Every pod has a disk of its own.
            for uri in (*read, *written):
                shutil.rmtree(local(uri), ignore_errors=True)


def _artifacts(side):
    return [listed["artifacts"] for listed in side["artifacts"].values()]


def local(uri):
    """Where KFP's launcher puts an artifact of S3."""
    assert uri.startswith("s3://")
    return "/s3/" + uri.removeprefix("s3://")


class TaskFailedError(Exception):
    """A task failed: its name and what it printed."""


def in_order(tasks):
    """The names of the tasks, each after those that it depends on or reads from."""
    ordered = []
    while len(ordered) < len(tasks):
        ready = [
            name
            for name, task in tasks.items()
            if name not in ordered and _needed(task) <= set(ordered)
        ]
        assert ready, "cyclic dependencies"
        ordered += ready
    return ordered


def _needed(task):
    sources = task.get("inputs", {}).get("artifacts", {}).values()
    read = {source["taskOutputArtifact"]["producerTask"] for source in sources}
    return read | set(task.get("dependentTasks", ()))
