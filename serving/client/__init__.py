"""The client of the retrieval service; imports gRPC, but neither TensorFlow nor NumPy.

with RetrievalClient("search.internal:8600") as client:
    gift, phone = client.retrieve(["gift", "iphone 16"], recall=0.9)
    for item in gift:
        print(item.item_id, item.score, item.fields["title"])
"""

from serving.client.async_client import AsyncRetrievalClient
from serving.client.connection import TlsFiles
from serving.client.errors import (
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RetrievalError,
    Unauthenticated,
    Unavailable,
)
from serving.client.results import Item, QueryResult, ReleaseInfo, Results, Timings
from serving.client.sync_client import RetrievalClient
