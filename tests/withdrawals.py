"""Withdraws releases, whichever they are; `pebr rollback` takes the newest."""

import json

from pebr_tf import storage
from pebr_tf.release.versions import withdrawn


def withdraw(releases, *versions):
    """Makes the versions withdrawn, too."""
    entries = {str(each): {"reason": "", "time": ""} for each in {*withdrawn(releases), *versions}}
    storage.write_bytes(f"{releases}/withdrawn.json", json.dumps(entries).encode())
