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
    metadata: str | None = setting(
        None,
        "MySQL server of the metadata of `pebr run`; null: a SQLite file in root",
        # Not PostgreSQL: ml-metadata 1.16 writes SQL that it rejects.
        pattern=r"mysql://[^\s:@/]+@[^\s:@/]+(:[0-9]{1,5})?/[^\s:@/?]+",
        form="a MySQL database without a password, such as mysql://user@host:3306/pebr",
    )
    beam_args: tuple[str, ...] = setting(
        (), "Passed to Beam: runner, project, workers; []: in this process"
    )
