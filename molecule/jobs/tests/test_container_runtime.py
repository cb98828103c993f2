# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role container_runtime on real nodes: ranges, storage, an image of an archive or a registry; and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_cluster import ONE_SIZE, Cluster, Ended
from lab_containers import as_train
from lab_launcher import write

#: Each play takes seconds, and the default tests have few.
pytestmark = pytest.mark.long
NAME = "localhost/lab-role:1"
STORAGE = "/var/lib/lab-containers"
FILES = "/etc/subuid /etc/subgid /etc/containers/storage.conf"
#: The user of the lab lingers for this test alone.
FORGET = f"""
{as_train("podman system migrate")}; loginctl disable-linger train
for file in {FILES}; do mv $file.lab-kept $file; done
rm -rf {STORAGE} /etc/gpu-cluster/images.json
"""
#: A registry as pulls see it (distribution-spec, "Pull"): files, and the type of a manifest.
REGISTRY = """
from http.server import HTTPServer, SimpleHTTPRequestHandler

class Registry(SimpleHTTPRequestHandler):
    def guess_type(self, path):
        return "application/vnd.oci.image.manifest.v1+json" if "/manifests/" in path else "application/octet-stream"

HTTPServer(("127.0.0.1", 5000), Registry).serve_forever()
"""
REGISTRY_FOLDER = "/var/lib/lab-registry"
STOP_REGISTRY = "systemctl stop lab-registry; true"
PULLED = "127.0.0.1:5000/lab-role:1"
#: Without a certificate, which podman accepts only from registries that it is told of.
INSECURE = "/etc/containers/registries.conf.d/lab.conf"


def tar(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def make_image(text: str) -> tuple[bytes, bytes, str]:
    """An image with one file: its layer, its configuration and its ID."""
    layer = tar({"said": text.encode()})
    layers = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": layers}).encode()
    return layer, config, hashlib.sha256(config).hexdigest()


def make_archive(path: Path, text: str) -> str:
    """A docker archive; the ID of its image."""
    layer, config, image = make_image(text)
    manifest = [{"Config": f"{image}.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    path.write_bytes(tar({"layer.tar": layer, f"{image}.json": config, "manifest.json": json.dumps(manifest).encode()}))
    return image


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    """All nodes, whose user has no range yet."""
    cluster.everywhere(f"for file in {FILES}; do cp -a $file $file.lab-kept; done; sed -i /^train:/d /etc/subuid")
    yield list(cluster.hosts)
    cluster.everywhere(FORGET)


@pytest.fixture(scope="module")
def node(nodes: list[str]) -> str:
    return nodes[0]


def apply(cluster: Cluster, node: str, folder: Path, *arguments: str, **variables: Any) -> Ended:
    """The role alone."""
    task = {"name": "Apply", "ansible.builtin.import_role": {"name": "baremetal.gpu_cluster.container_runtime"}}
    given = {"container_runtime_enabled": True, "container_runtime_storage_path": STORAGE, **variables}
    play = {"name": "Containers", "hosts": node, "gather_facts": False, "become": True, "vars": given, "tasks": [task]}
    (folder / "play.yml").write_text(json.dumps([play]))
    return cluster.play(str(folder / "play.yml"), *arguments)


def test_an_image_of_an_archive(cluster: Cluster, node: str, tmp_path: Path) -> None:
    image = make_archive(tmp_path / "first.tar", "first")
    images = {"container_runtime_images": [{"name": NAME, "archive": str(tmp_path / "first.tar")}]}
    planned = apply(cluster, node, tmp_path, "--check", "--diff", **images)
    assert planned.code == 0 and "+train:100000:65536" in planned.text, planned.text
    assert "train" not in cluster.shell(node, "cat /etc/subuid") and STORAGE not in planned.text.split("PLAY RECAP")[1]

    ended = apply(cluster, node, tmp_path, **images)
    assert ended.code == 0, ended.text
    shown = as_train(f"podman image inspect --format '{{{{.Id}}}}' {NAME}".replace("'", '"'))
    assert cluster.shell(node, shown).strip() == image
    assert cluster.shell(node, "grep ^train: /etc/subuid").strip() == "train:100000:65536"
    assert cluster.shell(node, f"stat -c '%U %a' {STORAGE}/4000").strip() == "train 700"

    again = apply(cluster, node, tmp_path, "--diff", **images)
    assert again.code == 0 and "changed=0" in again.text, again.text

    # Another image of the same name.
    other = make_archive(tmp_path / "first.tar", "second")
    assert other != image and apply(cluster, node, tmp_path, **images).code == 0
    assert cluster.shell(node, shown).strip() == other
    facts = cluster.run([*ad_hoc(cluster, node), "-m", "baremetal.gpu_cluster.gpu_node_facts"])
    assert other in facts.text and NAME in facts.text, facts.text


@pytest.fixture
def registry(cluster: Cluster, node: str) -> Iterator[str]:
    """The ID of the image that a registry on the node has."""
    layer, config, image = make_image("of a registry")

    def part(kind: str, content: bytes) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(content)}

    parts = {"config": part("config.v1+json", config), "layers": [part("layer.v1.tar", layer)]}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", **parts})
    folder = f"{REGISTRY_FOLDER}/v2/lab-role"
    files = {f"{folder}/blobs/{part('', content)['digest']}": content for content in (layer, config)}
    cluster.shell(node, f"mkdir -p {folder}/blobs {folder}/manifests {Path(INSECURE).parent}")
    for path, content in {**files, f"{folder}/manifests/1": manifest.encode()}.items():
        cluster.shell(node, f"echo {base64.b64encode(content).decode()} | base64 --decode > {path}")
    write(cluster, node, f"{REGISTRY_FOLDER}/serve.py", REGISTRY)
    write(cluster, node, INSECURE, '[[registry]]\nlocation = "127.0.0.1:5000"\ninsecure = true\n')
    serve = "systemd-run --quiet --collect --unit lab-registry --working-directory"
    cluster.shell(node, f"{serve} {REGISTRY_FOLDER} /usr/bin/python3 serve.py")
    cluster.shell(node, "for try in $(seq 100); do curl -s -o /dev/null 127.0.0.1:5000/v2/ && break; sleep 0.1; done")
    yield image
    cluster.shell(node, f"{STOP_REGISTRY}; rm -rf {REGISTRY_FOLDER} {INSECURE}")


def test_an_image_of_a_registry(cluster: Cluster, node: str, registry: str, tmp_path: Path) -> None:
    """It is pulled once; a registry that does not answer is no matter then, and is named before."""
    images = {"container_runtime_images": [{"name": PULLED}]}
    absent = {"container_runtime_images": [{"name": PULLED.replace(":1", ":2")}]}
    planned = apply(cluster, node, tmp_path, "--check", "--diff", **images)
    assert planned.code == 0 and PULLED in planned.text, planned.text
    missing = apply(cluster, node, tmp_path, **absent)
    assert missing.code != 0 and f"podman pull {PULLED.replace(':1', ':2')}" in missing.text, missing.text

    ended = apply(cluster, node, tmp_path, **images)
    assert ended.code == 0, ended.text
    shown = as_train(f"podman image inspect --format '{{{{.Id}}}}' {PULLED}".replace("'", '"'))
    assert cluster.shell(node, shown).strip() == registry

    cluster.shell(node, STOP_REGISTRY)
    again = apply(cluster, node, tmp_path, "--diff", **images)
    assert again.code == 0 and "changed=0" in again.text, again.text
    silent = apply(cluster, node, tmp_path, **absent)
    assert silent.code != 0 and "connection refused" in silent.text, silent.text


def ad_hoc(cluster: Cluster, node: str) -> list[str]:
    command = cluster.command("site.yml")
    return ["ansible", node, "--become", *command[command.index("-i") : command.index("-i") + 2]]


def test_what_is_wrong_is_refused_before_anything_changes(cluster: Cluster, node: str, tmp_path: Path) -> None:
    """A closed folder, and all wrong images at once."""
    before = cluster.shell(node, f"cat {FILES}")
    closed = apply(cluster, node, tmp_path, container_runtime_storage_path="/root" + "/containers")
    assert closed.code != 0 and "lies below /root, which this user may not enter" in closed.text, closed.text
    (tmp_path / "text.tar").write_text("no archive")
    images = [{"name": "localhost/a:1", "archive": "/nowhere.tar"}, {"name": NAME, "archive": f"{tmp_path}/text.tar"}]
    wrong = apply(cluster, node, tmp_path, container_runtime_images=images)
    assert wrong.code != 0 and "cannot be read on the controller" in wrong.text, wrong.text
    assert "holds no image" in wrong.text, wrong.text
    assert cluster.shell(node, f"cat {FILES}") == before


def test_another_image_on_one_member_is_found_by_the_check(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    """And mended with the command of the finding."""
    image = make_archive(tmp_path / "first.tar", "the same")
    images = {"container_runtime_images": [{"name": NAME, "archive": str(tmp_path / "first.tar")}]}
    ended = apply(cluster, "gpu_cluster", tmp_path, **images)
    assert ended.code == 0, ended.text
    *others, odd = nodes
    other = make_archive(tmp_path / "first.tar", "another one")
    ended = apply(cluster, odd, tmp_path, **images)
    assert ended.code == 0, ended.text

    checked = cluster.check(*ONE_SIZE)
    (found,) = of_images(checked)
    assert found["severity"] == "warning" and found["hosts"] == [odd], checked.text
    assert found["cause"] == (
        f"the container image differs: {odd} has {NAME} {other[:12]}, "
        f"{len(others)} of {len(nodes)} have {NAME} {image[:12]}"
    )
    assert f"--tags container_runtime --limit {odd}" in checked.text, checked.text

    make_archive(tmp_path / "first.tar", "the same")
    assert apply(cluster, odd, tmp_path, **images).code == 0
    checked = cluster.check(*ONE_SIZE)
    assert checked.report and of_images(checked) == [], checked.text


def of_images(checked: Ended) -> list[dict[str, Any]]:
    return [one for one in checked.report.get("findings", []) if one["id"] == "GC-VER-019"]
