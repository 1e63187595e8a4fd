"""The client against the service itself."""

import pytest
from service_helpers import PATIENCE, Authority, served

from pebr_tf.release.release import find_release
from serving.client import (
    InvalidRequest,
    RetrievalClient,
    TlsFiles,
    Unauthenticated,
    Unavailable,
)


def test_tokens_and_mutual_tls(releases, tmp_path):
    ours, theirs = (Authority(tmp_path, name) for name in ("ours", "theirs"))
    certificate, key = ours.issue("server")
    (tmp_path / "tokens").write_text("s3cret\n")
    settings = {
        "tls__certificate": certificate,
        "tls__key": key,
        "tls__mutual": True,
        "tls__client_authority": theirs.path,
        "token_file": str(tmp_path / "tokens"),
    }
    mine = dict(zip(("certificate", "key"), theirs.issue("client"), strict=True))
    with served(find_release(releases), **settings) as service:
        address = f"127.0.0.1:{service.server.grpc_port}"
        tls = TlsFiles(authority=ours.path, **mine)
        with RetrievalClient(address, "s3cret", tls, timeout=PATIENCE) as client:
            (result,) = client.retrieve(["phone"], top_k=9, limit=2, fields=[])
            assert [dict(item.fields) for item in result] == [{}, {}]
            assert result.truncated
            with pytest.raises(InvalidRequest, match="queries") as caught:
                client.retrieve(["phone", " "], request_id="r-1")
            assert (caught.value.field, caught.value.request_id) == ("queries[1]", "r-1")
        by_name = f"dns:///localhost:{service.server.grpc_port}"
        named = TlsFiles(authority=ours.path, server_name="127.0.0.1", **mine)
        with RetrievalClient(by_name, "other", named, timeout=PATIENCE) as client:
            assert client.healthy()
            with pytest.raises(Unauthenticated):
                client.retrieve(["phone"])
        others = TlsFiles(theirs.path, **mine)
        stranger = RetrievalClient(address, tls=others, timeout=PATIENCE, retries=0)
        with stranger, pytest.raises(Unavailable):
            stranger.retrieve(["phone"])
