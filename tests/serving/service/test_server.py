"""From start to drain: ports, readiness, rejections while stopping, and how long it may take."""

import asyncio
import socket

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from service_helpers import (
    PATIENCE,
    GatedEngine,
    loaded,
    poll,
    rejection,
    running,
    served,
    service_settings,
)

from pebr_tf.errors import UserError
from serving.proto.retrieval_pb2 import GetReleaseRequest, RetrieveRequest
from serving.service import sockets, supervisor
from serving.service.engine import Engine
from serving.service.metrics import Metrics
from serving.service.supervisor import ReleaseSource

REQUEST = RetrieveRequest(queries=["phone"])


def stop_elsewhere(service):
    """Begins the stop of a server, on its loop; the future says whether all was finished."""
    loop = service.server._http_task.get_loop()
    stopping = asyncio.run_coroutine_threadsafe(service.server.stop(), loop)
    # The end of the block stops the server too.
    service.server.stop = lambda: asyncio.wrap_future(stopping)
    return stopping


@pytest.fixture
def held(retriever):
    with served(retriever.release.directory, kind=GatedEngine, drain_seconds=20) as service:
        # Both clients connect before the ports close.
        service.stub.GetRelease(GetReleaseRequest())
        service.http.get("/healthz")
        call = service.stub.Retrieve.future(REQUEST, timeout=PATIENCE)
        assert service.engine.waiting.wait(PATIENCE)
        yield service, call
        service.engine.gate.set()


def test_while_stopping_new_calls_are_rejected_and_admitted_ones_finish(held):
    service, call = held
    health = health_pb2_grpc.HealthStub(service.channel)
    watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    stopping = stop_elsewhere(service)
    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
    watch.cancel()
    poll(lambda: service.http.get("/readyz").status_code == 503)
    error = service.http.get("/readyz").json()["error"]
    assert (error["status"], error["message"]) == ("UNAVAILABLE", "the service is not ready.")
    assert service.http.get("/healthz").status_code == 200
    request = health_pb2.HealthCheckRequest(service="pebr.retrieval.v1.Retrieval")
    assert health.Check(request).status == health_pb2.HealthCheckResponse.NOT_SERVING
    poll(lambda: service.engine._batcher._stopped is not None)
    assert rejection(service.stub.Retrieve, REQUEST) == ("UNAVAILABLE", "the service is stopping.")
    answer = service.post({"queries": ["phone"]})
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "the service is stopping."
    assert answer.headers["retry-after"] == "1"
    assert not call.done()
    service.engine.gate.set()
    assert len(call.result(PATIENCE).results) == 1
    assert stopping.result(PATIENCE) is True


def test_a_server_that_retires_answers_each_connection_once_more(retriever):
    with served(retriever.release.directory, drain_seconds=20) as service:
        assert "connection" not in service.http.get("/healthz").headers
        loop = service.server._http_task.get_loop()
        retiring = asyncio.run_coroutine_threadsafe(service.server.retire(), loop)
        poll(lambda: service.engine.retiring)
        assert not retiring.done()
        answer = service.post({"queries": ["phone"]})
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert retiring.result(PATIENCE) is True
        # The end of the block stops the server too.
        service.server.stop = lambda: asyncio.sleep(0)


def test_the_drain_has_an_end(retriever):
    directory = retriever.release.directory
    with served(directory, kind=GatedEngine, drain_seconds=0.1) as service:
        call = service.stub.Retrieve.future(REQUEST, timeout=PATIENCE)
        assert service.engine.waiting.wait(PATIENCE)
        assert stop_elsewhere(service).result(PATIENCE) is False
        assert rejection(call.result)[0] == "UNAVAILABLE"
        service.engine.gate.set()


def test_ports_are_taken_for_another_service_and_are_free_after_the_stop(retriever):
    with served(retriever.release.directory) as service:
        ports = service.server.grpc_port, service.server.http_port
        for port in ports:
            with pytest.raises(UserError, match="address already in use"):
                sockets.listen("127.0.0.1", port, "http_port")
    for port in ports:
        sockets.listen("127.0.0.1", port, "http_port").close()
    with pytest.raises(UserError) as caught:
        sockets.listen("192.0.2.1", 0, "http_port")
    assert str(caught.value).endswith("Received: 192.0.2.1:0 (cannot assign requested address).")


@pytest.mark.parametrize("name", ["grpc_port", "http_port"])
def test_a_port_in_use_is_one_sentence(retriever, name):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        settings, metrics = service_settings(**{name: port}), Metrics()
        source = ReleaseSource(retriever.release.directory, follow=False)
        message = (
            f"serving.{name} must be one that can be listened on. "
            f"Received: 127.0.0.1:{port} (address already in use)."
        )
        # Said before the release is loaded, and by the server itself.
        with pytest.raises(UserError) as caught:
            supervisor.run(source, settings)
        assert str(caught.value) == message
        engine = Engine(loaded(retriever.release.directory), settings, metrics)
        with pytest.raises(UserError) as caught, running(engine, settings, metrics):
            pass
        assert str(caught.value) == message
        asyncio.run(engine.stop())


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        *(({"host": host}, None) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *(
            ({"host": host}, ["serving.tls", "serving.token_file"])
            for host in ("0.0.0.0", "10.0.0.1", "example.org")
        ),
        ({"host": "::", "tls__certificate": "c", "tls__key": "k"}, ["serving.token_file"]),
    ],
)
def test_an_open_door_is_in_the_log(caplog, changes, missing):
    supervisor.warn(service_settings(**changes))
    exposed = [record.without for record in caplog.records if record.getMessage() == "exposed"]
    assert exposed == ([] if missing is None else [missing])
