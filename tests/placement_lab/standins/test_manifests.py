"""Reading manifests: valid and invalid objects, and the folder of the samples."""

from pathlib import Path

import pytest

from placement_lab.standins import manifests
from placement_lab.standins.manifests import ManifestError


def test_a_folder_is_read_by_file_name_without_empty_documents(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("---\n---\n{apiVersion: v1, kind: B, metadata: {name: b}}\n---\n")
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: A, metadata: {name: a}}")
    (tmp_path / "notes.txt").write_text("not read")
    assert [item["kind"] for item in manifests.load(tmp_path)] == ["A", "B"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a: [", id="no YAML"),
        pytest.param(b"\xff\xff", id="not UTF-8"),
        pytest.param(b"hello", id="a word"),
        pytest.param(b"kind: A", id="no apiVersion"),
        pytest.param(b"{apiVersion: v1, kind: A, metadata: a}", id="metadata is a word"),
    ],
)
def test_an_invalid_document_is_reported_with_its_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    with pytest.raises(ManifestError, match=r"bad\.yaml"):
        manifests.load(file)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="FileNotFoundError"):
        manifests.load(tmp_path / "gone.yaml")


def test_the_samples_are_found_in_the_repository_and_in_a_wheel(tmp_path: Path) -> None:
    assert (manifests.samples() / "fleet" / "secrets.yaml").is_file()
    folders = (tmp_path / "samples", tmp_path / "package" / "samples")
    with pytest.raises(ManifestError, match="samples are missing"):
        manifests.samples(folders)
    (folders[1] / "fleet").mkdir(parents=True)
    assert manifests.samples(folders) == folders[1]
