"""Meshes that are built on the way, kept beside the solved lead fields."""

import hashlib
import json
from dataclasses import asdict
from functools import cache as remember
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import fieldcorr.mesh as mesh_package
from fieldcorr.batch.cache import Cache
from fieldcorr.mesh import Mesh, MeshSizes, build_mesh
from fieldcorr.model import Model


def built_mesh(model: Model, sizes: MeshSizes, cache: Cache) -> Mesh:
    """Return the mesh of a model's shapes, from the cache, or from gmsh and then into the cache."""
    key = _key(model, sizes)
    stored = cache.load(key)
    if stored is None:
        mesh = build_mesh(model, sizes=sizes)
        arrays = {name: getattr(mesh, name) for name in _ARRAYS}
        texts = {name: getattr(mesh, name) for name in _TEXTS}
        cache.save(key, {**arrays, "texts": np.array(json.dumps(texts))})
        return mesh
    texts = json.loads(str(stored.pop("texts")))
    names = {name: tuple(texts[name]) for name in _TEXTS[:2]}
    made: dict[str, Any] = {**stored, **names, "origin": texts["origin"]}
    return Mesh(**made)


_ARRAYS = ("points", "cells", "cell_tags", "facets", "facet_tags")
_TEXTS = ("tissues", "facet_names", "origin")


def _key(model: Model, sizes: MeshSizes) -> str:
    inputs = {"mesh of": model.shape_hash, "sizes": asdict(sizes), "builder": _builder_hash()}
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@remember
def _builder_hash() -> str:
    """Return the sha256 of the builder's sources and of gmsh's version."""
    try:
        total = hashlib.sha256(version("gmsh").encode())
    except PackageNotFoundError:
        total = hashlib.sha256(b"none")
    for path in sorted(Path(mesh_package.__file__).parent.rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()
