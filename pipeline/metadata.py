"""Where the metadata of local runs is: a SQLite file of the root, or MySQL."""

from urllib.parse import urlsplit

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration.metadata import (
    mysql_metadata_connection_config,
    sqlite_metadata_connection_config,
)

from pebr_tf.config import Pipeline
from pebr_tf.environment import PASSWORD, metadata_password
from pebr_tf.errors import UserError, one_line

PORT = 3306


def connect(pipeline: Pipeline) -> metadata_store_pb2.ConnectionConfig:
    """How TFX connects to the metadata; creates the database and tables that are missing.

    Raises:
      UserError: The database does not accept the connection.
    """
    if pipeline.metadata is None:
        return sqlite_metadata_connection_config(f"{pipeline.root}/metadata.sqlite")
    url = urlsplit(pipeline.metadata)
    try:
        connection = mysql_metadata_connection_config(
            url.hostname, url.port or PORT, url.path[1:], url.username, metadata_password()
        )
        MetadataStore(connection)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"pipeline.metadata must be a MySQL server that accepts the password in {PASSWORD}. "
            f"Received: {pipeline.metadata}, {one_line(error)}."
        ) from error
    return connection
