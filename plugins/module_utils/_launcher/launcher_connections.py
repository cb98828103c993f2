# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connections to the agents, over ssh."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.launcher_elastic import Elastic
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.messages import (
    ALWAYS,
    on_one_line,
    read_event,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.nodes import Node
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.paths import own_digest
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.seconds import RETRY
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.ssh import ssh_command
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._launcher.streams import (
    MAX_LINE,
    MAX_MESSAGE,
    Lines,
    Unsent,
    read_some,
)


class Connections(Elastic):
    """Connects to agents, and hears them."""

    def connect(self, node: Node) -> None:
        node.process = subprocess.Popen(
            ssh_command(node.job, self.ssh_port),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours: ssh would end with it, and nobody could stop the ranks.
        )
        stdin, stdout, stderr = node.process.stdin, node.process.stdout, node.process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise RuntimeError("Popen without its pipes")
        node.state, node.heard, node.spoken, node.errors = "connecting", time.monotonic(), False, b""
        node.input, node.ranks, node.problems, node.asked = Lines(MAX_MESSAGE), set(), [], node.heard
        node.unsent = Unsent(self.selector, stdin.fileno())
        for stream, action in ((stdout, self.hear), (stderr, self.hear_errors)):
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream.fileno(), selectors.EVENT_READ, lambda action=action: action(node))
        node.send(do="job", job=node.job, digest=own_digest())

    def hear_errors(self, node: Node) -> None:
        if node.process is None or node.process.stderr is None:
            return
        part = read_some(node.process.stderr.fileno())
        if part == b"":
            with contextlib.suppress(KeyError):  # Asked for once more when ssh has ended.
                self.selector.unregister(node.process.stderr.fileno())
        node.errors = (node.errors + (part or b""))[-4096:]

    def hear(self, node: Node) -> None:
        if node.process is None or node.process.stdout is None:
            return
        part = read_some(node.process.stdout.fileno())
        if part is None:
            return
        if part == b"":
            self.hear_errors(node)
            reason = (node.errors.decode("utf-8", "replace").strip().splitlines() or ["no reason given"])[-1]
            self.gone(node, f"the connection has ended: {reason}")
            return
        node.heard, node.spoken = time.monotonic(), True
        for line in node.input.feed(part):
            event, fields = read_event(line)
            if not event or not (event in ALWAYS or (event == "ready") == (node.state == "connecting")):
                # What the user's shell prints in front of every command.
                self.screen.show(sys.stderr, f"[{node.name}] {on_one_line(line[:MAX_LINE])}", live=True)
            elif node.process is not None:
                getattr(self, f"on_{event}")(node, **fields)

    def gone(self, node: Node, reason: str) -> None:
        """A node is out of reach."""
        before = node.state
        self.disconnect(node, "stopped" if before == "ended" else "lost")
        if before == "connecting":
            node.problems = [reason]
        if self.stopping:
            self.left.append(f"{node.name} is out of reach ({reason}): its agent ends its ranks by itself")
        elif before in ("ready", "running"):
            self.lost(node, reason, spare=before == "ready" and self.started)
        node.retry_at = time.monotonic() + RETRY
