#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module torch_environment: a pinned Python environment with PyTorch, built beside the old one and switched to."""

from __future__ import annotations

DOCUMENTATION = r"""
module: torch_environment
short_description: Keep a pinned Python environment with PyTorch
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Builds a virtual environment beside O(prefix), in a folder whose name ends in a digest of the inputs, installs the
    pinned requirements, verifies them by importing C(torch) and C(torch.distributed), and only then makes O(prefix) a
    link to it, in one step.
  - A build that fails or is interrupted leaves the environment in use as it was. What it left is removed by the next
    run.
  - When nothing differs, only folder names are read; nothing of PyTorch is imported.
  - The environment is readable by all users and writable by root only.
options:
  prefix:
    description: The path under which jobs find the environment. Becomes a link.
    type: path
    default: /opt/gpu-cluster/torch
  requirements:
    description:
      - The packages, each pinned to one version, C(torch) among them. A pin such as C(torch==2.13.0) takes any build
        of that version, C(2.13.0+cpu) too.
    type: list
    elements: str
    required: true
  python:
    description: The interpreter of which the environment is made.
    type: path
    default: /usr/bin/python3.12
  find_links:
    description: A folder on the node that holds all wheels. pip then uses no index at all. Excludes O(index_url).
    type: str
    default: ""
  index_url:
    description: The package index. What pip on the node is configured for when neither this nor O(find_links) is given.
    type: str
    default: ""
  install_timeout_seconds:
    description: After this time the installation is ended and has failed.
    type: int
    default: 3600
  verify_timeout_seconds:
    description: After this time the import of PyTorch is ended and has failed.
    type: int
    default: 300
  keep:
    description: How many old environments stay, the one used before first.
    type: int
    default: 1
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Cannot say whether pip would find the packages.
  diff_mode:
    support: partial
    details: Shows which environment would be in use, not the packages in it.
  platform:
    platforms: posix
"""

EXAMPLES = r"""
- name: Install PyTorch from wheels on the node
  baremetal.gpu_cluster.torch_environment:
    requirements: [torch==2.13.0]
    find_links: /srv/wheels
"""

RETURN = r"""
environment:
  description: The folder that the prefix names.
  returned: success
  type: str
  sample: /opt/gpu-cluster/torch-0f3a5b7c9d1e
packages:
  description: Every package in it with its version. Empty in check mode when it would be built.
  returned: success
  type: dict
  sample:
    torch: 2.13.0+cpu
built:
  description: Whether it was built in this run, or in check mode would be.
  returned: success
  type: bool
  sample: false
verified:
  description: What the import said.
  returned: when it was built
  type: dict
  sample:
    torch: 2.13.0+cpu
    cuda: null
    nccl: null
    gloo: true
removed:
  description: The folders of old or interrupted environments that were removed.
  returned: success
  type: list
  elements: str
  sample: []
"""

import contextlib
import fcntl
import glob
import json
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._deadline import OUTPUT_TAIL, CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._torch_environment import (
    RECORD,
    Decision,
    Environment,
    InputError,
    Requirement,
    decide,
    incomplete,
    installed_packages,
    is_environment_name,
    make_inputs,
    missing_packages,
    parse_requirements,
    superfluous,
)

#: There when the kernel has SELinux and a policy is loaded.
SELINUX = "/sys/fs/selinux/enforce"
RESTORECON = "/usr/sbin/restorecon"

VERIFY = """
import json
import torch
import torch.distributed as distributed
nccl = None
if distributed.is_available() and distributed.is_nccl_available():
    nccl = ".".join(str(part) for part in torch.cuda.nccl.version())
print(json.dumps({
    "torch": torch.__version__,
    "cuda": torch.version.cuda,
    "nccl": nccl,
    "gloo": distributed.is_available() and distributed.is_gloo_available(),
}))
"""


class BuildError(Exception):
    """A step of the build went wrong; the text says which and why."""


class Store:
    """The folder in which the environments and the link to one of them are."""

    def __init__(self, prefix: str) -> None:
        self.prefix = os.path.abspath(prefix)
        self.parent, self.base = os.path.split(self.prefix)

    def path(self, name: str) -> str:
        """The folder of an environment."""
        return os.path.join(self.parent, name)

    def linked(self) -> str:
        """The name of the environment in use; empty when there is none."""
        if not os.path.islink(self.prefix):
            return ""
        target = os.path.join(self.parent, os.readlink(self.prefix))
        return os.path.basename(target) if os.path.dirname(target) == self.parent else ""

    def installed(self, name: str) -> dict[str, str]:
        """What is installed in an environment."""
        folders = glob.glob(os.path.join(self.path(name), "lib", "python3*", "site-packages"))
        return installed_packages(entry for folder in folders for entry in os.listdir(folder))

    def environment(self, name: str) -> Environment:
        """One environment as it is on the disk."""
        record: dict[str, Any] = {}
        with (
            contextlib.suppress(OSError, ValueError),
            open(os.path.join(self.path(name), RECORD), encoding="utf-8") as stream,
        ):
            record = json.load(stream)
        return Environment(
            name=name,
            inputs=record.get("inputs"),
            recorded=record.get("packages", {}),
            installed=self.installed(name),
            has_python=os.access(os.path.join(self.path(name), "bin", "python"), os.X_OK),
        )

    def environments(self) -> list[Environment]:
        """All of them, the newest first."""
        if not os.path.isdir(self.parent):
            return []
        names = [
            entry.name
            for entry in os.scandir(self.parent)
            if entry.is_dir(follow_symlinks=False) and is_environment_name(self.base, entry.name)
        ]
        names.sort(key=lambda name: os.stat(self.path(name)).st_mtime, reverse=True)
        return [self.environment(name) for name in names]

    def record(self, name: str, inputs: dict[str, Any], packages: dict[str, str], verified: dict[str, Any]) -> None:
        """End a build: from here on the environment counts as complete."""
        path = os.path.join(self.path(name), RECORD)
        with open(path + ".new", "w", encoding="utf-8") as stream:
            json.dump({"inputs": inputs, "packages": packages, "verified": verified}, stream, indent=2, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(path + ".new", path)

    def switch(self, name: str) -> None:
        """Let the prefix name another environment, in one step."""
        temporary = f"{self.prefix}.new"
        if os.path.lexists(temporary):
            os.unlink(temporary)
        os.symlink(name, temporary)
        os.rename(temporary, self.prefix)

    def remove(self, names: Sequence[str]) -> list[str]:
        """Remove environments; the folders that are gone."""
        for name in names:
            shutil.rmtree(self.path(name))
        return [self.path(name) for name in names]

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Keep a second run out while this one builds."""
        with open(f"{self.prefix}.lock", "w", encoding="ascii") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BuildError(f"another run holds {self.prefix}.lock; wait for its end and repeat") from None
            yield stream.fileno()


def closed_parent(path: str) -> str:
    """The first parent that ordinary users cannot enter; empty when they reach the path."""
    while path != "/":
        path = os.path.dirname(path)
        if os.path.isdir(path) and not stat.S_IMODE(os.stat(path).st_mode) & stat.S_IXOTH:
            return path
    return ""


def python_version(python: str) -> str:
    """The full version of the interpreter."""
    return run([python, "-I", "-c", "import platform; print(platform.python_version())"], 60, python).strip()


def build(
    store: Store, name: str, params: dict[str, Any], requirements: Sequence[Requirement], lock: int
) -> dict[str, Any]:
    """Make the environment and verify it; what the import said."""
    path = store.path(name)
    run([params["python"], "-m", "venv", path], 300, f"{params['python']} -m venv", [lock])
    python = os.path.join(path, "bin", "python")
    source = []
    if params["find_links"]:
        source = ["--no-index", "--find-links", params["find_links"]]
    elif params["index_url"]:
        source = ["--index-url", params["index_url"]]
    packages = [requirement.text for requirement in requirements]
    run(
        [python, "-m", "pip", "install", "--no-cache-dir", "--progress-bar=off", *source, *packages],
        params["install_timeout_seconds"],
        "pip install",
        [lock],
    )
    if os.path.exists(SELINUX):
        # What pip unpacks has the label of its folder; programs and libraries have labels of their own.
        # Not handed the lock: SELinux lets restorecon write to nothing of ours.
        run([RESTORECON, "-R", path], 300, "restorecon", [])
    missing = missing_packages(requirements, store.installed(name))
    if missing:
        raise BuildError("pip ended well, but the environment is not the wanted one: {}".format("; ".join(missing)))
    out = run([python, "-I", "-c", VERIFY], params["verify_timeout_seconds"], "the import of torch", [lock])
    try:
        return dict(json.loads(out.strip().splitlines()[-1]))
    except (ValueError, IndexError):
        raise BuildError(f"the import of torch printed something unexpected: {out[-OUTPUT_TAIL:]!r}") from None


def apply(
    store: Store,
    decision: Decision,
    inputs: dict[str, Any],
    params: dict[str, Any],
    requirements: Sequence[Requirement],
    lock: int,
) -> dict[str, Any]:
    """Build when needed, switch, prune."""
    previous = store.linked()
    removed = store.remove(incomplete(store.environments(), previous))
    verified: dict[str, Any] = {}
    if decision.build:
        try:
            verified = build(store, decision.name, params, requirements, lock)
            store.record(decision.name, inputs, store.installed(decision.name), verified)
        except BaseException:
            shutil.rmtree(store.path(decision.name), ignore_errors=True)
            raise
    store.switch(decision.name)
    names = [environment.name for environment in store.environments()]
    removed += store.remove(superfluous(names, decision.name, previous, params["keep"]))
    return {"removed": removed, "verified": verified} if decision.build else {"removed": removed}


def main() -> None:
    """Compare, then build and switch."""
    module = AnsibleModule(
        argument_spec={
            "prefix": {"type": "path", "default": "/opt/gpu-cluster/torch"},
            "requirements": {"type": "list", "elements": "str", "required": True},
            "python": {"type": "path", "default": "/usr/bin/python3.12"},
            "find_links": {"type": "str", "default": ""},
            "index_url": {"type": "str", "default": ""},
            "install_timeout_seconds": {"type": "int", "default": 3600},
            "verify_timeout_seconds": {"type": "int", "default": 300},
            "keep": {"type": "int", "default": 1},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        requirements = parse_requirements(params["requirements"])
    except InputError as error:
        module.fail_json(msg=f"Wrong input for the environment: {error}")
    if params["find_links"] and params["index_url"]:
        module.fail_json(msg="find_links and index_url were both given: choose one source of packages")
    store = Store(params["prefix"])
    if os.path.lexists(store.prefix) and not os.path.islink(store.prefix):
        module.fail_json(
            msg=f"{store.prefix} exists and is no link: it is not an environment of this module. Move it away."
        )
    if not os.access(params["python"], os.X_OK):
        if module.check_mode:
            module.exit_json(changed=True, built=True, environment="", packages={}, removed=[])
        module.fail_json(
            msg=f"There is no interpreter {params['python']} on this node: install it, or name another one."
        )
    closed = closed_parent(store.prefix)
    if closed:
        module.fail_json(
            msg=f"Ordinary users cannot enter {closed}, so they would not find {store.prefix}: chmod o+x it."
        )
    # The module's own umask may be stricter than what jobs of other users need.
    os.umask(0o022)
    previous = store.linked()
    try:
        inputs = make_inputs(
            requirements,
            python=params["python"],
            python_version=python_version(params["python"]),
            find_links=params["find_links"],
            index_url=params["index_url"],
        )
        decision = decide(store.base, inputs, store.environments(), store.linked())
        details: dict[str, Any] = {"removed": []}
        if decision.changed and not module.check_mode:
            if decision.build and params["find_links"].startswith("/") and not os.path.isdir(params["find_links"]):
                raise BuildError(f"there is no folder {params['find_links']} with wheels on this node")
            os.makedirs(store.parent, mode=0o755, exist_ok=True)
            with store.locked() as lock:
                details = apply(store, decision, inputs, params, requirements, lock)
    except (BuildError, CommandError, OSError) as error:
        kept = f"{store.prefix} still names {previous}" if previous else f"There is no {store.prefix} yet"
        module.fail_json(msg=f"The environment was not built: {error}. {kept}.")
    module.exit_json(
        changed=decision.changed,
        built=decision.build,
        environment=store.path(decision.name),
        packages=store.installed(decision.name),
        diff={
            "before_header": store.prefix,
            "after_header": store.prefix,
            "before": f"{previous}\n" if previous else "",
            "after": f"{decision.name}\n",
        },
        **details,
    )


if __name__ == "__main__":
    main()
