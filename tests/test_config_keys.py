"""Every key of the configuration is read by code outside `pebr_tf/config`."""

import ast

from import_graph import PACKAGES, files

from pebr_tf.config import Config
from pebr_tf.config.section import leaves

# Redundant, but written out: the three shares must sum to 1.
IMPLIED = {"strata.tail"}
# The runner looks these up by the name of a component; tests/pipeline checks that each has a key.
BY_COMPONENT = "cloud.resources."


def attributes_read():
    return {
        node.attr
        for package in PACKAGES
        for module, path in files(package).items()
        if not module.startswith("pebr_tf.config")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def test_every_key_is_read_by_code_outside_the_configuration():
    read = attributes_read()
    unread = {path for path, key in leaves(Config) if key.name not in read}
    assert {path for path in unread if not path.startswith(BY_COMPONENT)} == IMPLIED
