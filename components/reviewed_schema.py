"""Imports a reviewed schema into the pipeline."""

import hashlib

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.schema_gen.import_schema_gen.executor import Executor
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.dsl.io import fileio
from tfx.types.standard_artifacts import Schema

from components.wiring import connected, interface
from pebr_tf.errors import UserError


class ImportSchemaGen(BaseComponent):
    """ImportSchemaGen of TFX, but an edit of the file invalidates the cache."""

    SPEC_CLASS = interface({"schema_file": str, "digest": str}, {"schema": Schema})
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(self, schema_file: str, read: bool = True):
        """Reads the file. Without `read` edits are not seen, and caching must be off."""
        digest = hashlib.sha256(_checked(schema_file)).hexdigest() if read else ""
        super().__init__(connected(self.SPEC_CLASS, schema_file=schema_file, digest=digest))


def _checked(path: str) -> bytes:
    if not fileio.exists(path) or fileio.isdir(path):
        raise UserError(f"data.schema must be an existing file. Received: {path}.")
    with fileio.open(path, "rb") as file:
        content = file.read()
    try:
        text_format.Parse(content.decode("utf-8"), schema_pb2.Schema())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise UserError(f"{path} must be a schema, pbtxt. Received: {error}.") from error
    return content
