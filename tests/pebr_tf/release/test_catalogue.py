"""Files of a release that cannot be read: one sentence each."""

import pytest

from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.errors import UserError
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.release import PushResult

READERS = {
    "ids.npy": (lambda folder: EmbeddedCatalogue(folder).ids(), "must be an .npy file"),
    "vectors.npy": (lambda folder: EmbeddedCatalogue(folder).vectors(), "must be an .npy file"),
    "release.json": (PushResult.load, "must hold version and path"),
    "cutoff.json": (Calibration.load, "must be JSON"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("content", [None, b"", b"not one"])
def test_a_file_that_cannot_be_read(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    read, requirement = READERS[name]
    with pytest.raises(UserError, match=rf"{name} {requirement}\. Received: .+\."):
        read(tmp_path)
