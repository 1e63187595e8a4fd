"""Settings of a run: where it works, where releases go, what Beam runs on."""

from pebr_tf.config.section import Section
from pebr_tf.config.setting import setting


class Pipeline(Section):
    """Name, folders and Beam arguments of a run."""

    name: str = setting(
        "pebr",
        "Name in the metadata",
        pattern=r"[a-z][a-z0-9-]{0,62}",
        form="lower-case letters, digits and hyphens, a letter first",
    )
    root: str = setting("run", "Folder of artifacts, metadata and checkpoints")
    releases: str = setting(
        "releases",
        "Folder of pushed releases, one subfolder per version; may be gs://..., s3://...",
    )
    beam_args: tuple[str, ...] = setting(
        (), "Passed to Beam: runner, project, workers; []: in this process"
    )
