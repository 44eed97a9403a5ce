"""This file holds the behaviour of manifests: equal runs write equal bytes, and a broken one is named."""

import dataclasses
import hashlib

import pytest

from miniverl.errors import RecordError
from miniverl.record.manifest import FILE, FileFacts, Manifest, manifests

MANIFEST = Manifest(
    step=3,
    cursor=6,
    rows=6,
    chain_head="c" * 64,
    files={"b": FileFacts(bytes=2, sha256="2"), "a": FileFacts(bytes=1, sha256="1")},
    metadata={"updates": 3},
)


def test_a_manifest_comes_back_with_the_digest_of_its_bytes(tmp_path):
    (tmp_path / FILE).write_bytes(MANIFEST.to_bytes())
    assert Manifest.read(tmp_path) == (MANIFEST, hashlib.sha256(MANIFEST.to_bytes()).hexdigest())
    assert MANIFEST.digest == Manifest.read(tmp_path)[1]


def test_the_order_of_files_does_not_matter():
    turned = dataclasses.replace(MANIFEST, files=dict(reversed(MANIFEST.files.items())))
    assert turned.to_bytes() == MANIFEST.to_bytes()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"schema":2}', b'{"schema":1,"files":{}}'])
def test_what_is_not_a_manifest_is_named(tmp_path, data):
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(RecordError, match=r"manifest\.json"):
        Manifest.read(tmp_path)


def test_manifests_of_a_run_come_newest_first_without_drafts_and_broken_ones(tmp_path):
    for name, step in (("step-2", 2), ("step-10", 10), (".tmp-1-11", 11), ("step-12", None)):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        data = b"{" if step is None else dataclasses.replace(MANIFEST, step=step).to_bytes()
        (tmp_path / "checkpoints" / name / FILE).write_bytes(data)
    assert [one.step for one in manifests(tmp_path)] == [10, 2]
    assert manifests(tmp_path / "nowhere") == ()
