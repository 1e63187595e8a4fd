"""The configuration as a whole: all sections, and the way from and to a YAML file."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pebr_tf.config.corpus import Data, Features, Split, Strata
from pebr_tf.config.error import ConfigError, shown
from pebr_tf.config.model import Loss, Towers, Training
from pebr_tf.config.retrieval import Cutoff, Evaluation, Index
from pebr_tf.config.runs import Airflow, Cloud, Kubeflow, Pipeline
from pebr_tf.config.section import Section, leaves
from pebr_tf.config.serving import Serving
from pebr_tf.config.setting import AUTO
from pebr_tf.config.yaml_text import parse, render
from pebr_tf.files import replacing_file

# What the towers are made by. With another split, what is held out now may have been trained on.
TOWER_SECTIONS = ("features", "towers", "loss", "split", "strata")


class Config(Section):
    """Every number that a user may tune; valid by construction, immutable, hashable."""

    data: Data = Data()
    split: Split = Split()
    strata: Strata = Strata()
    features: Features = Features()
    towers: Towers = Towers()
    loss: Loss = Loss()
    training: Training = Training()
    cutoff: Cutoff = Cutoff()
    index: Index = Index()
    evaluation: Evaluation = Evaluation()
    pipeline: Pipeline = Pipeline()
    serving: Serving = Serving()
    cloud: Cloud = Cloud()
    kubeflow: Kubeflow = Kubeflow()
    airflow: Airflow = Airflow()

    def check(self) -> None:
        self.require(
            self.split.by != "time" or self.data.timestamp_column is not None,
            "data.timestamp_column",
            "name a column when split.by is time",
        )
        # With every list cut at the limit, no policy can reach a larger average.
        self.require(
            self.evaluation.average_k == AUTO or self.evaluation.average_k[-1] <= self.cutoff.limit,
            "evaluation.average_k",
            f"stay within cutoff.limit ({self.cutoff.limit})",
        )
        self.require(
            self.evaluation.gates.min_index_recall <= self.index.recall_target,
            "evaluation.gates.min_index_recall",
            f"be at most index.recall_target ({self.index.recall_target})",
        )
        self.require(
            self.cloud.training_job.workers == 1 or self.training.strategy == "multi_worker",
            "training.strategy",
            f"be multi_worker when cloud.training_job.workers is {self.cloud.training_job.workers}",
        )

    @classmethod
    def from_yaml(cls, text: str) -> "Config":
        return cls.from_mapping(parse(text))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Config":
        """The configuration in a YAML file; an error starts with its path."""
        try:
            return cls.from_yaml(_read(Path(path)))
        except ConfigError as error:
            raise error.in_file(str(path)) from None

    def to_yaml(self, comments: bool = True) -> str:
        """YAML that `from_yaml` turns into an equal configuration; comments explain each key."""
        return render(self, comments)

    def dump(self, path: str | PathLike[str], comments: bool = True) -> None:
        """Writes `to_yaml` to a file, whole or not at all."""
        try:
            with replacing_file(Path(path)) as temporary:
                temporary.write_text(self.to_yaml(comments), encoding="utf-8")
        except OSError as error:
            raise ConfigError("", "be a writable file", f"{error.strerror}", str(path)) from None

    def replace(self, key: str, value: object) -> "Config":
        """A copy with one setting changed: `config.replace("training.batch_size", 512)`."""
        return self.replace_all({key: value})

    def replace_all(self, changes: Mapping[str, object]) -> "Config":
        """A copy with the settings at some dotted keys changed, all at once."""
        mapping = self.to_mapping()
        for path, value in changes.items():
            *sections, name = path.split(".")
            node: Any = mapping
            for depth, section in enumerate(sections):
                node = node.setdefault(section, {})
                if not isinstance(node, dict):
                    parent = ".".join(sections[: depth + 1])
                    raise ConfigError(path, f"be a known key ({parent} has none)", shown(value))
            node[name] = value
        return type(self).from_mapping(mapping)

    def changes(self) -> dict[str, Any]:
        """The dotted keys whose values are not the defaults, with their values."""
        default = type(self)()
        values = {path: self.value_at(path) for path, _ in leaves(type(self))}
        return {path: value for path, value in values.items() if value != default.value_at(path)}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError("", "be an existing file", "no such file") from None
    except IsADirectoryError:
        raise ConfigError("", "be a file", "a directory") from None
    except OSError as error:
        raise ConfigError("", "be a readable file", f"{error.strerror}") from None
    except UnicodeDecodeError as error:
        received = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise ConfigError("", "be UTF-8 text", received) from None
