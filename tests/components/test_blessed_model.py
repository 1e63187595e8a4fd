"""Which model counts as the last blessed one, in a real metadata store."""

import ml_metadata
import pytest
from ml_metadata.proto import metadata_store_pb2
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing

from components.artifacts import PushedRelease
from components.blessed_model import LastBlessedModel
from pebr_tf.release.versions import restore, withdraw

pytestmark = pytest.mark.slow

Event = metadata_store_pb2.Event


class History:
    def __init__(self):
        config = metadata_store_pb2.ConnectionConfig()
        config.fake_database.SetInParent()
        self.store = ml_metadata.MetadataStore(config)
        self._kinds = {
            kind: self.store.put_artifact_type(metadata_store_pb2.ArtifactType(name=kind.TYPE_NAME))
            for kind in (Examples, Model, ModelBlessing, PushedRelease)
        }
        step = metadata_store_pb2.ExecutionType(name="step")
        self._step = self.store.put_execution_type(step)
        self.made = {kind: [] for kind in self._kinds}

    def examples(self):
        return self._make(Examples, [])

    def train(self, examples):
        return self._make(Model, [examples])

    def bless(self, model, blessed=1):
        return self._make(ModelBlessing, [model], blessed=blessed, current_model_id=model)

    def push(self, blessing, version):
        return self._make(PushedRelease, [blessing], version=version)

    def look(self, *artifacts):
        """A resolver has looked at artifacts and found one of them."""
        self._record(list(artifacts), artifacts[-1], Event.INTERNAL_OUTPUT)

    def _make(self, kind, inputs, **properties):
        artifact = metadata_store_pb2.Artifact(type_id=self._kinds[kind], uri=f"{kind.TYPE_NAME}")
        for name, value in properties.items():
            artifact.custom_properties[name].int_value = value
        (made,) = self.store.put_artifacts([artifact])
        self._record(inputs, made, Event.OUTPUT)
        self.made[kind].append(made)
        return made

    def _record(self, inputs, output, kind):
        execution = metadata_store_pb2.Execution(type_id=self._step)
        (number,) = self.store.put_executions([execution])
        pairs = [*((each, Event.INPUT) for each in inputs), (output, kind)]
        self.store.put_events(
            [Event(artifact_id=a, execution_id=number, type=kind) for a, kind in pairs]
        )

    def resolve(self, releases, examples=None):
        given = {"model": self._artifacts(Model), "model_blessing": self._artifacts(ModelBlessing)}
        if examples is not None:
            given["examples"] = [a for a in self._artifacts(Examples) if a.id == examples]
        found = LastBlessedModel(str(releases)).resolve_artifacts(self.store, given)
        assert set(found) == set(given)
        assert len(found["model"]) == len(found["model_blessing"])
        return found["model"][0].id if found["model"] else None

    def _artifacts(self, kind):
        kinds = self.store.get_artifact_types()
        (proto,) = (each for each in kinds if each.name == kind.TYPE_NAME)
        return [
            artifact_utils.deserialize_artifact(proto, each)
            for each in self.store.get_artifacts_by_id(self.made[kind])
        ]


@pytest.fixture
def history():
    return History()


def test_the_latest_that_was_blessed(history, tmp_path):
    assert history.resolve(tmp_path, history.examples()) is None
    first, second, third = (history.train(history.examples()) for _ in range(3))
    history.bless(first)
    history.bless(second)
    history.bless(third, blessed=0)
    assert history.resolve(tmp_path, history.examples()) == second


def test_a_run_does_not_start_from_what_it_made(history, tmp_path):
    """Else a second run on the same clicks would train anew, and so on."""
    monday, tuesday = history.examples(), history.examples()
    first, second = history.train(monday), history.train(tuesday)
    history.bless(first)
    history.bless(second)
    # What a resolver once found was not made by it.
    history.look(tuesday, first)
    assert history.resolve(tmp_path, tuesday) == first
    assert history.resolve(tmp_path, monday) == second
    assert history.resolve(tmp_path) == second


@pytest.fixture
def releases(tmp_path):
    for version in (5, 6):
        (tmp_path / str(version) / "query_model").mkdir(parents=True)
    return tmp_path


def test_a_withdrawn_release_does_not_count(history, releases):
    good, bad = (history.train(history.examples()) for _ in range(2))
    history.push(history.bless(good), 5)
    history.push(history.bless(bad), 6)
    assert history.resolve(releases) == bad
    withdraw(releases, 6, "empty lists")
    assert history.resolve(releases) == good
    restore(releases, 6)
    assert history.resolve(releases) == bad


def test_a_withdrawn_index_leaves_its_model(history, releases):
    model = history.train(history.examples())
    history.push(history.bless(model), 5)
    history.push(history.bless(model), 6)
    withdraw(releases, 6)
    assert history.resolve(releases) == model
