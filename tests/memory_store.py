"""TensorFlow's file system in memory, ram://, as an object store that `pebr_tf.storage` reaches."""

import os

import pyarrow as pa
import tensorflow as tf
from pyarrow import fs


def _kind(path):
    if not tf.io.gfile.exists(path):
        return fs.FileType.NotFound
    return fs.FileType.Directory if tf.io.gfile.isdir(path) else fs.FileType.File


class Upload:
    """A file that is there once it is complete; it needs no folder."""

    def __init__(self, path):
        self._path, self._blocks, self.closed = path, [], False

    def write(self, block):
        self._blocks.append(bytes(block))

    def close(self):
        if self.closed:
            return
        self.closed = True
        tf.io.gfile.makedirs(os.path.dirname(self._path))
        # In memory, writing to an existing file appends to it.
        if tf.io.gfile.exists(self._path):
            tf.io.gfile.remove(self._path)
        with tf.io.gfile.GFile(self._path, "wb") as file:
            file.write(b"".join(self._blocks))


class MemoryStore(fs.FileSystemHandler):
    """What `pebr_tf.storage` needs of a file system; a test may set `before` to fail or to act.

    `before` is called with "read", "list", "write" or "delete", and the path.
    """

    def __init__(self):
        self.before = lambda use, path: None
        self.file_system = fs.PyFileSystem(self)

    def get_type_name(self):
        return "memory"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return [fs.FileInfo(path, _kind(f"ram://{path}")) for path in paths]

    def get_file_info_selector(self, selector):
        folder = f"ram://{selector.base_dir}"
        self.before("list", folder)
        found = []
        for name in tf.io.gfile.listdir(folder) if tf.io.gfile.exists(folder) else ():
            path = f"{selector.base_dir}/{name.rstrip('/')}"
            (info,) = self.get_file_info([path])
            found.append(info)
            if selector.recursive and not info.is_file:
                found += self.get_file_info_selector(fs.FileSelector(path, recursive=True))
        return found

    def open_input_stream(self, path):
        self.before("read", f"ram://{path}")
        if not tf.io.gfile.exists(f"ram://{path}"):
            raise FileNotFoundError(path)
        return pa.BufferReader(tf.io.gfile.GFile(f"ram://{path}", "rb").read())

    def open_output_stream(self, path, metadata):
        self.before("write", f"ram://{path}")
        return pa.PythonFile(Upload(f"ram://{path}"), mode="w")

    def _unused(self, *arguments):
        raise NotImplementedError

    def delete_file(self, path):
        self.before("delete", f"ram://{path}")
        tf.io.gfile.remove(f"ram://{path}")

    open_input_file = open_append_stream = create_dir = delete_dir = delete_dir_contents = _unused
    delete_root_dir_contents = move = copy_file = _unused
