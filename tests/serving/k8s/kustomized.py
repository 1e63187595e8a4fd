"""The manifests as a cluster gets them: resources, with the patches of an overlay merged in."""

from pathlib import Path

import yaml

import serving

FOLDER = Path(serving.__file__).parent / "k8s"
VARIANTS = ("base", "tf-serving")
# Lists that a strategic merge joins, by the key that tells their members apart; it replaces others.
MERGED = {
    ("Deployment", "containers"): "name",
    ("Deployment", "initContainers"): "name",
    ("Service", "ports"): "port",
}


def documents(variant):
    """Kind -> manifest, of a folder of `serving/k8s`."""
    kustomization = _load(FOLDER / variant / "kustomization.yaml")
    found = {}
    for resource in kustomization["resources"]:
        path = FOLDER / variant / resource
        if path.is_dir():
            found.update(documents(path.name))
        else:
            document = _load(path)
            found[document["kind"]] = document
    for each in kustomization.get("patches", []):
        patch = _load(FOLDER / variant / each["path"])
        kind = patch["kind"]
        found[kind] = merge(found[kind], patch, kind)
    for generator in kustomization["configMapGenerator"]:
        files = {name: (FOLDER / variant / name).read_text() for name in generator["files"]}
        found["ConfigMap"] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": generator["name"]},
            "data": files,
        }
    return found


def images(variant):
    """Image -> image with its tag."""
    return {
        each["name"]: f"{each['newName']}:{each['newTag']}"
        for folder in {"base", variant}
        for each in _load(FOLDER / folder / "kustomization.yaml")["images"]
    }


def merge(base, patch, kind, key=None):
    if isinstance(base, dict) and isinstance(patch, dict):
        merged = dict(base)
        for name, value in patch.items():
            merged[name] = merge(base[name], value, kind, name) if name in base else value
        return merged
    identity = MERGED.get((kind, key))
    if identity is None:
        return patch
    merged = {each[identity]: each for each in base}
    for each in patch:
        merged[each[identity]] = merge(merged.get(each[identity], {}), each, kind)
    return list(merged.values())


def _load(path):
    return yaml.safe_load(path.read_text())
