"""A local stand-in for Vertex AI: runs the tasks of a compiled job in order, one process each.

Commands, arguments and parameters come from the compiled job. The stand-in chooses the paths of
artifacts, writes the ExecutorInput of each task, and answers the queries of resolvers from the
artifacts of earlier tasks.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pebr_process import python

STORE = "projects/1/locations/here/metadataStores/default/artifacts"


@dataclass
class Vertex:
    """The folder that jobs run in, all artifacts, oldest first, and what each task printed."""

    folder: Path
    artifacts: list[dict[str, Any]] = field(default_factory=list)
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
            if "resolver" in executor:
                outputs[task] = self._resolved(executor["resolver"], inputs)
            else:
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
        self.artifacts += created.values()
        return {key: [artifact] for key, artifact in created.items()}

    def _new(self, kind, uri):
        # Not ascending: the names of Vertex AI do not tell the order.
        number = hash((uri, len(self.artifacts))) % 10**12
        return {"name": f"{STORE}/{number}", "type": kind, "uri": uri, "metadata": {}}

    def _process(self, name, command, given):
        interpreter, flag, module, *arguments = command
        assert (interpreter, flag) == ("python", "-m")
        text = json.dumps(given)
        arguments = [text if part == "{{$}}" else part for part in arguments]
        done = python(self.folder, module, *arguments)
        self.log[name] = done.out + done.err
        if done.code:
            raise TaskFailedError(name, self.log[name])

    def _resolved(self, resolver, inputs):
        found = {}
        for key, query in resolver["outputArtifactQueries"].items():
            terms = query["filter"].split(" AND ")
            fitting = [each for each in self.artifacts if fits(each, terms, inputs)]
            found[key] = fitting[-1:]
        return found


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


def fits(artifact, terms, inputs):
    return all(_fits(artifact, term, inputs) for term in terms)


def _fits(artifact, term, inputs):
    left, _, right = term.partition("=")
    right = right.strip('"')
    if left == "state":
        return right == "LIVE"
    if left == "schema_title":
        return yaml.safe_load(artifact["type"]["instanceSchema"])["title"] == right
    if match := re.fullmatch(r"metadata\.(\w+)\.number_value", left):
        return artifact["metadata"].get(match[1]) == float(right)
    assert left == "name", term
    pattern = r"\{\{\$\.inputs\.artifacts\['(\w+)'\]\.metadata\['(\w+)'\]\}\}"
    key, name = re.fullmatch(pattern, right).groups()
    return bool(inputs.get(key)) and artifact["name"] == inputs[key][0]["metadata"].get(name)
