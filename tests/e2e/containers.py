"""A local stand-in for Vertex AI: runs the tasks of a compiled job in order, one process each.

Commands, arguments and parameters come from the compiled job. The stand-in chooses the paths of
artifacts and writes the ExecutorInput of each task.
"""

import json
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
        spec = job["pipelineSpec"]
        tasks = spec["root"]["dag"]["tasks"]
        root = f"{job['runtimeConfig']['gcsOutputDirectory']}/1/{name}"
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
                "outputFile": f"{root}/executor_output.json",
            },
        }
        if hook := container.get("lifecycle", {}).get("preCacheCheck"):
            self._process(f"{name} driver", [*hook["command"], *hook["args"]], given)
        command = [*container["command"], *container["args"]]
        self._process(name, command, given)
        written = json.loads((self.folder / given["outputs"]["outputFile"]).read_text("utf-8"))
        for key, artifact in created.items():
            (reported,) = written["artifacts"][key]["artifacts"]
            assert (reported["uri"], reported["name"]) == (artifact["uri"], artifact["name"])
            artifact["metadata"] = reported.get("metadata", {})
        return {key: [artifact] for key, artifact in created.items()}

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
