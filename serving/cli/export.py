"""`pebr export`: the query model and the index of a release as one SavedModel."""

from pathlib import Path

import click

from pebr_tf.cli.options import out_option, release_option


@click.command()
@release_option
@out_option
def export(release: Path, out: Path) -> None:
    """Write a release as one SavedModel with ScaNN's op inside.

    Its signature `retrieve` takes query texts. It requires a server that links ScaNN's op, such as
    the image of serving/tf_serving/Dockerfile.retrieve. The release must have a ScaNN index.
    """
    from pebr_tf.errors import UserError
    from pebr_tf.release.release import Release, find_release
    from pebr_tf.retrieval import saved_model

    found = Release.load(find_release(release))
    encode = saved_model.SavedQueryModel(found.query_model)
    try:
        saved_model.export(encode, found.catalogue.index, out, found.config().cutoff.limit)
    except FileExistsError as error:
        raise UserError(str(error)) from None
    click.echo(f"Wrote {out} with the signature `retrieve`, from version {found.version}.")
