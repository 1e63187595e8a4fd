"""The stand-in refuses what TF Serving refuses, with its statuses and messages."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from stand_in.model_server import serve_models
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    predict_pb2,
)

from pebr_tf.errors import UserError
from serving.encoder import NAMES
from serving.tf_serving.requests import encode_request, query_at_request

OUTPUTS = {*NAMES, "frequency"}
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
DEADLINE = 60


def request(**changes):
    """A good request as text, with keys of its model_spec changed."""
    spec = {"name": '"pebr_query"', **changes}
    fields = " ".join(f"{name}: {value}" for name, value in spec.items() if value is not None)
    made = predict_pb2.PredictRequest()
    text_format.Parse(f"model_spec {{ {fields} }}", made)
    made.inputs["query"].CopyFrom(tf.make_tensor_proto(["phone", "laptop"]))
    return made


def refused(method, message):
    """(code, details) of a call that fails."""
    with pytest.raises(grpc.RpcError) as caught:
        method(message, timeout=DEADLINE)
    return caught.value.code(), caught.value.details()


def test_without_a_version_the_newest_answers_with_all_outputs(prediction, embedded):
    response = prediction.Predict(request(), timeout=DEADLINE)
    assert response.model_spec.name == "pebr_query"
    assert response.model_spec.version.value == 7
    assert response.model_spec.signature_name == "serving_default"
    assert set(response.outputs) == OUTPUTS
    expected = embedded.encode(["phone", "laptop"])
    for name in NAMES:
        received = tf.make_ndarray(response.outputs[name])
        np.testing.assert_array_equal(received, getattr(expected, name))


def test_numbers_travel_as_fields_of_their_type(prediction):
    response = prediction.Predict(request(), timeout=DEADLINE)
    assert not response.outputs["embedding"].tensor_content
    assert len(response.outputs["embedding"].float_val) == 2 * 8
    assert len(response.outputs["stratum"].int64_val) == 2


def test_only_the_outputs_of_the_filter(prediction):
    message = request(version="{ value: 6 }")
    message.output_filter.extend(["tau", "level"])
    response = prediction.Predict(message, timeout=DEADLINE)
    assert set(response.outputs) == {"tau", "level"}
    assert response.model_spec.version.value == 6


def test_other_signatures(prediction):
    response = prediction.Predict(
        query_at_request(["phone"], 0.8, "pebr_query", 7), timeout=DEADLINE
    )
    assert set(response.outputs) == OUTPUTS
    assert response.model_spec.signature_name == "query_at"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"version": "{ value: 5 }"},
            (NOT_FOUND, "Servable not found for request: Specific(pebr_query, 5)"),
        ),
        ({"name": '"other"'}, (NOT_FOUND, "Servable not found for request: Latest(other)")),
        (
            {"name": '"other"', "version": "{ value: 7 }"},
            (NOT_FOUND, "Servable not found for request: Specific(other, 7)"),
        ),
        ({"name": None}, (INVALID, "ModelSpec has no name specified.")),
        (
            {"version_label": '"stable"'},
            (INVALID, "Unrecognized servable version label: stable"),
        ),
        (
            {"signature_name": '"predict"'},
            (
                grpc.StatusCode.FAILED_PRECONDITION,
                'Serving signature key "predict" not found.',
            ),
        ),
        (
            {"signature_name": '"__saved_model_init_op"'},
            (
                grpc.StatusCode.FAILED_PRECONDITION,
                'Serving signature key "__saved_model_init_op" not found.',
            ),
        ),
    ],
)
def test_models_that_are_not_there(prediction, changes, expected):
    assert refused(prediction.Predict, request(**changes)) == expected


def test_no_model_at_all(prediction, model_service):
    expected = (INVALID, "Missing ModelSpec")
    assert refused(prediction.Predict, predict_pb2.PredictRequest()) == expected
    metadata = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    assert refused(prediction.GetModelMetadata, metadata) == expected
    status = get_model_status_pb2.GetModelStatusRequest()
    assert refused(model_service.GetModelStatus, status) == expected


def _with(**inputs):
    message = request()
    del message.inputs["query"]
    for name, value in inputs.items():
        tensor = value if not isinstance(value, np.ndarray | list) else tf.make_tensor_proto(value)
        message.inputs[name].CopyFrom(tensor)
    return message


def _tensor(dtype, *sizes, **fields):
    tensor = tf.make_tensor_proto([], dtype=tf.float32)
    tensor.Clear()
    tensor.dtype = dtype
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    for name, values in fields.items():
        getattr(tensor, name).extend(values)
    return tensor


@pytest.mark.parametrize(
    ("message", "details"),
    [
        (
            _with(),
            "input size does not match signature: 0!=1 len({}) != len({query}). Sent extra: {}. "
            "Missing but required: {query}.",
        ),
        (
            _with(query=["a"], cutoff=[0.5]),
            "input size does not match signature: 2!=1 len({cutoff,query}) != len({query}). "
            "Sent extra: {cutoff}. Missing but required: {}.",
        ),
        (
            _with(text=["a"]),
            "Signature input alias: query(feed name: serving_default_query:0) not found in request "
            "and no default value provided. Inputs expected to be in the request {text}, or "
            "default input alias set: ",
        ),
        (_with(query=[0.5]), "Expects arg[0] to be string but float is provided"),
        (_with(query=_tensor(99, 1)), "tensor parsing error: query"),
        (_with(query=_tensor(7, -2, string_val=[b"a"])), "tensor parsing error: query"),
        (_with(query=_tensor(7, 2**40, string_val=[b"a"])), "tensor parsing error: query"),
        (_with(query=[["a"]]), "input query must have shape (None,), not [1, 1]"),
    ],
)
def test_inputs_that_do_not_fit(prediction, message, details):
    assert refused(prediction.Predict, message) == (INVALID, details)


def test_inputs_of_different_lengths(prediction):
    message = query_at_request(["a", "b"], 0.5, "pebr_query", 7)
    message.inputs["cutoff"].CopyFrom(tf.make_tensor_proto(np.array([0.5], np.float32)))
    details = "Batching Run() input tensors must have equal 0th-dimension size"
    assert refused(prediction.Predict, message) == (INVALID, details)


def test_outputs_that_do_not_exist(prediction):
    message = request()
    message.output_filter.extend(["tau", "score"])
    code, details = refused(prediction.Predict, message)
    assert code is INVALID
    names = ",".join(sorted(OUTPUTS))
    assert details == (
        f"output tensor alias not found in signature: score Outputs expected to be in the set "
        f"{{{names}}}."
    )
    message.output_filter[:] = ["tau", "tau"]
    assert refused(prediction.Predict, message) == (INVALID, "duplicate output tensor alias: tau")


def test_a_deadline_ends_a_long_run(prediction):
    message = _with(query=["laptop bag"] * 200_000)
    with pytest.raises(grpc.RpcError) as caught:
        prediction.Predict(message, timeout=0.001)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_metadata_is_the_signatures_of_the_model(prediction, query_model):
    message = get_model_metadata_pb2.GetModelMetadataRequest(
        model_spec=request().model_spec, metadata_field=["signature_def"]
    )
    response = prediction.GetModelMetadata(message, timeout=DEADLINE)
    assert response.model_spec.version.value == 7
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    loaded = tf.saved_model.load(str(query_model)).signatures
    assert set(signatures.signature_def) == set(loaded)
    default = signatures.signature_def["serving_default"]
    assert set(default.outputs) == OUTPUTS
    assert [each.size for each in default.outputs["embedding"].tensor_shape.dim] == [-1, 8]


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ([], "GetModelMetadataRequest must specify at least one metadata_field"),
        (["signature_def", "graph"], "Metadata field graph is not supported"),
    ],
)
def test_metadata_that_there_is_not(prediction, fields, details):
    message = get_model_metadata_pb2.GetModelMetadataRequest(
        model_spec=request().model_spec, metadata_field=fields
    )
    assert refused(prediction.GetModelMetadata, message) == (INVALID, details)


def statuses(service, **changes):
    """Version -> state."""
    message = get_model_status_pb2.GetModelStatusRequest(model_spec=request(**changes).model_spec)
    response = service.GetModelStatus(message, timeout=DEADLINE)
    state = get_model_status_pb2.ModelVersionStatus.State
    return {each.version: state.Name(each.state) for each in response.model_version_status}


def test_status_of_all_versions_or_of_one(model_service):
    assert statuses(model_service) == {7: "AVAILABLE", 6: "AVAILABLE"}
    assert statuses(model_service, version="{ value: 6 }") == {6: "AVAILABLE"}


@pytest.mark.parametrize(
    ("changes", "details"),
    [
        ({"version": "{ value: 5 }"}, "Could not find version 5 of model pebr_query"),
        ({"name": '"other"'}, "Could not find any versions of model other"),
    ],
)
def test_status_of_what_is_not_there(model_service, changes, details):
    message = get_model_status_pb2.GetModelStatusRequest(model_spec=request(**changes).model_spec)
    assert refused(model_service.GetModelStatus, message) == (NOT_FOUND, details)


def _reload(kept, **labels):
    message = model_management_pb2.ReloadConfigRequest()
    config = message.config.model_config_list.config.add(name="pebr_query")
    config.model_version_policy.latest.num_versions = kept
    for label, version in labels.items():
        config.version_labels[label] = version
    return message


def test_labels_name_versions(model_service, prediction):
    model_service.HandleReloadConfigRequest(_reload(2, stable=6, canary=7), timeout=DEADLINE)
    for label, version in (("stable", 6), ("canary", 7)):
        response = prediction.Predict(request(version_label=f'"{label}"'), timeout=DEADLINE)
        assert response.model_spec.version.value == version
    assert statuses(model_service, version_label='"stable"') == {6: "AVAILABLE"}

    unavailable = refused(model_service.HandleReloadConfigRequest, _reload(2, stable=5))
    assert unavailable == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "Request to assign label to version 5 of model pebr_query, which is not currently "
        "available for inference",
    )
    # The old labels stay.
    prediction.Predict(request(version_label='"canary"'), timeout=DEADLINE)

    model_service.HandleReloadConfigRequest(_reload(2), timeout=DEADLINE)
    code, _ = refused(prediction.Predict, request(version_label='"canary"'))
    assert code is INVALID


def test_other_configurations_are_refused(model_service):
    empty = model_management_pb2.ReloadConfigRequest()
    assert refused(model_service.HandleReloadConfigRequest, empty)[0] is INVALID
    other = _reload(1)
    other.config.model_config_list.config[0].name = "other"
    code, details = refused(model_service.HandleReloadConfigRequest, other)
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert details.startswith("This server has one model, pebr_query")


def test_the_newest_versions_are_kept(tmp_path, query_model):
    (tmp_path / "1").symlink_to(query_model)
    with serve_models(tmp_path, "pebr_query", poll_seconds=None) as running:
        spec = encode_request(["a"], "pebr_query", None).model_spec

        def states():
            name = get_model_status_pb2.ModelVersionStatus.State.Name
            return {v: name(each.state) for v, each in running.versions.statuses(spec).items()}

        # A name that is no number is no version, nor is a file that an editor left.
        (tmp_path / "latest").symlink_to(query_model)
        (tmp_path / "10").symlink_to(query_model)
        running.versions.poll()
        assert states() == {10: "AVAILABLE", 1: "AVAILABLE"}
        # Not in the order of the alphabet: 9 is older than 10.
        (tmp_path / "9").symlink_to(query_model)
        running.versions.poll()
        assert states() == {10: "AVAILABLE", 9: "AVAILABLE", 1: "END"}
        assert running.versions.find(spec)[0] == 10
        (tmp_path / "10").unlink()
        running.versions.poll()
        assert states() == {10: "END", 9: "AVAILABLE", 1: "AVAILABLE"}
        assert running.versions.find(spec)[0] == 9
        # A mount that has gone is no reason to serve nothing.
        tmp_path.rename(tmp_path.with_name("elsewhere"))
        running.versions.poll()
        assert running.versions.find(spec)[0] == 9


def test_a_version_that_cannot_be_loaded_says_why(tmp_path, query_model):
    (tmp_path / "1").symlink_to(query_model)
    (tmp_path / "2").mkdir()
    with serve_models(tmp_path, "pebr_query", poll_seconds=None) as running:
        spec = encode_request(["a"], "pebr_query", None).model_spec
        broken = running.versions.statuses(spec)[2]
        assert broken.failure.code is NOT_FOUND
        assert "saved_model.pb" in str(broken.failure)
        assert running.versions.find(spec)[0] == 1


def test_an_address_in_use(server, models):
    with pytest.raises(UserError, match=f"Received: {server.address} "):
        serve_models(models, "pebr_query", server.address)
