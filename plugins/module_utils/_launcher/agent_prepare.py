# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before the start: whether the node can take part, and what its ranks will need."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import socket
import subprocess
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.agent_ranks import Ranks
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.agent_state import Output
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.containers import IMAGE_LOOK, output_of
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.logs import log_folder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.meeting import (
    MEETING,
    help_path,
    meeting_path,
    remove,
    remove_help,
    socket_path,
    take,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.node_checks import (
    horovod_problem,
    node_problems,
    others_on_gpus,
    port_is_free,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import (
    EXPLAINER,
    own_digest,
    own_path,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import EXPLAIN
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.storage import storage_problems
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.users import user_name


class Preparation(Ranks):
    """Looks at the node, and makes what ranks need."""

    def prepare(self, job: dict[str, Any], digest: str) -> None:
        self.job = job
        if digest != own_digest():
            problems = [f"{own_path()} is another version here: run site.yml with --tags launcher"]
        else:
            problems = storage_problems(job) or node_problems(job) + self.open_socket() + self.open_logs()
        image = ""
        if job["image"] and not problems:
            image, problems = self.look_at_image()
        if not problems and not job["store"]:
            problems, notes = others_on_gpus(job)
            for note in notes:
                self.tell(event="note", text=note)
        if job["hang_help"] and not problems:
            self.offer_help()
        missing = horovod_problem(job) if job["mode"] == "horovod" and not problems else ""
        if job["holds"] and not problems:
            problems += self.hold_port()
        self.tell(event="ready", problems=problems, horovod=missing, port=self.port, image=image)

    def look_at_image(self) -> tuple[str, list[str]]:
        """The ID of the job's image on this node, and why it can't be used here."""
        name = self.job["image"]
        try:
            # The first podman of a user takes its time.
            argv = ["podman", "image", "inspect", "--format", "{{.Id}}", name]
            code, out, err = output_of(argv, IMAGE_LOOK, self.beat)
        except OSError as error:
            fix = "set container_runtime_enabled: true, and run site.yml with --tags container_runtime"
            return "", [f"--image needs podman, which can't be started here ({error.strerror}): {fix}"]
        except subprocess.TimeoutExpired:
            return "", [f"podman has not shown the image {name} within {IMAGE_LOOK:.0f} seconds"]
        found = out.strip()
        if code == 0 and re.fullmatch(r"(sha256:)?[0-9a-f]{64}", found):
            return found.rpartition(":")[2], []
        said = (err.strip().splitlines() or ["no reason given"])[-1]
        fix = (
            f"load it as {user_name()} on this node (podman load --input FILE), or name it in container_runtime_images "
            "and run site.yml with --tags container_runtime"
        )
        return "", [f"there is no image {name} for {user_name()} here: {fix}; podman: {said}"]

    def open_socket(self) -> list[str]:
        """The lock and the socket of this job on this node."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            path = socket_path(self.job["id"])
            if take(f"{path}.lock") is None:
                return ["the last agent of this job has not ended yet"]
            self.meeting = [path, f"{path}.lock"]
            remove(path)  # Of an agent that was killed.
            listener.bind(path)
        except OSError as error:
            return [f"no place for the ranks of {user_name()} to meet in {MEETING}: {error}"]
        listener.listen(1024)
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, lambda: self.accept(listener))
        return []

    def open_logs(self) -> list[str]:
        folder = log_folder(self.job)
        self.job["logs"] = folder
        try:
            os.makedirs(folder, exist_ok=True)
            self.link_logs(folder)
            log = os.path.join(folder, f"{self.job['name']}.log")
            os.close(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666))
            self.output = Output(self, None, log)
        except OSError as error:
            return [f"the folder of the logs can't be used: {error}"]
        return []

    def link_logs(self, folder: str) -> None:
        """Where `gpu-cluster-run logs` and `explain` look, also with --log-dir."""
        place = os.path.expanduser("~/gpu-cluster-logs")
        link = os.path.join(place, self.job["id"])
        with contextlib.suppress(OSError):
            os.makedirs(place, exist_ok=True)
            if not os.path.lexists(link):
                os.symlink(folder, link)

    def offer_help(self) -> None:
        """Without it the job runs as well."""
        folder = help_path(self.job["id"])
        try:
            os.mkdir(folder, 0o700)
            argv = [EXPLAINER, "hang-help", folder]
            # A node that says nothing for longer is lost.
            seconds = min(EXPLAIN, self.job["lost_after"] / 2)
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True)
            self.help = folder
        except (OSError, subprocess.SubprocessError):
            remove_help(self.job["id"])

    def hold_port(self) -> list[str]:
        """A port that is free, and that no other job on this node has been promised."""
        first, last, default = self.job["ports"]
        for port in [default, *range(first, last + 1)]:
            promise = take(meeting_path(f"port-{port}"))
            if promise is None:
                continue
            if port_is_free(port):
                self.port = port
                return []
            os.close(promise)
        return [f"no port of {first}-{last} is free for the rendezvous: end jobs, or widen the port plan"]
