#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module cuda_default: which installed CUDA toolkit /usr/local/cuda is, and that every session finds it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_default
short_description: Choose the default CUDA toolkit, for shells and for commands over ssh
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Selects the toolkit behind C(/usr/local/cuda) with alternatives, in manual mode, so that a later package does not
    change the link.
  - Puts C(CUDA_HOME) and the toolkit's programs (at the end of C(PATH)) into the environment of every session. Files in
    C(/etc/profile.d) set them for login shells, and lines in C(/etc/environment) for all other PAM sessions, such as a
    command over ssh. Neither sshd nor a session is restarted; open sessions do not change.
  - Lines of the site in C(/etc/environment) stay. A line that sets C(PATH) or C(CUDA_HOME) becomes a comment, and the
    new C(PATH) begins with its value. An empty O(release) restores the line.
  - Then runs C(nvcc) behind the link. If it reports another release, all changes are reverted.
  - C(LD_LIBRARY_PATH) is not set, because NVIDIA's packages have files in C(/etc/ld.so.conf.d).
options:
  release:
    description:
      - The release, such as V(13.0). It must be installed in C(/usr/local/cuda-13.0).
      - An empty string removes the files and sets alternatives to automatic mode.
    type: str
    default: ""
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: In check mode a missing toolkit is not a failure.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: EL 9 and 10.
"""

EXAMPLES = r"""
- name: Let everybody find CUDA 13.0
  baremetal.gpu_cluster.cuda_default:
    release: "13.0"
"""

RETURN = r"""
toolkit:
  description: Where the default toolkit is installed.
  returned: success
  type: str
  sample: /usr/local/cuda-13.0
nvcc:
  description: The release that C(nvcc) behind C(/usr/local/cuda) reports.
  returned: success; empty in check mode and without O(release)
  type: str
  sample: "13.0"
installed:
  description: The toolkits that alternatives knows.
  returned: success
  type: list
  elements: str
  sample: [/usr/local/cuda-12.8, /usr/local/cuda-13.0]
"""

import os
import re

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.deadline import CommandError, run
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda import alternatives, environment, versions
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import read_text, restore_file

#: Both programs answer at once; a folder on a dead file server does not.
SECONDS = 30
NVCC_RELEASE = re.compile(r"\brelease (\d+\.\d+)")

ERR_RELEASE = "release = %r: no release of CUDA. Fix: write one such as 13.0. Nothing was changed."
ERR_NOT_INSTALLED = (
    "release = %r: %s has no bin/nvcc. Fix: install the package %s first; alternatives knows %s. Nothing was changed."
)
ERR_NO_LINK = (
    "%s is no link, as an installation without packages leaves it, and alternatives would not replace it. Fix: remove "
    "or rename it. Nothing was changed."
)
ERR_LONG = (
    "%s: with the toolkit's programs a line would be longer than the %s bytes that PAM reads, and PAM would ignore the "
    "rest of the file: %s... Fix: shorten PATH there. Nothing was changed."
)
ERR_WRONG = "%s is %s, and its nvcc reports release %s instead of %s"
PUT_BACK = "%s. Everything was put back."
NOT_PUT_BACK = "%s. The old state could not be put back: %s"


class Node:
    """The commands and files of this node."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.program = module.get_bin_path(alternatives.COMMAND, required=True)

    def alternatives(self) -> alternatives.Alternatives:
        """What is registered; an error of the program means that nothing is."""
        try:
            return alternatives.parse(run([self.program, *alternatives.display()[1:]], SECONDS, "alternatives"))
        except CommandError:
            return alternatives.Alternatives()

    def do(self, commands: list[list[str]]) -> None:
        """Run them in order."""
        for argv in commands:
            run([self.program, *argv[1:]], SECONDS, " ".join(argv[:2]))

    def write(self, texts: dict[str, str]) -> None:
        """Write files, or take them away; /etc/environment is never taken away."""
        for path, text in texts.items():
            restore_file(self.module, path, text, bool(text) or path == environment.ENVIRONMENT_PATH)

    def nvcc(self) -> str:
        """The release of the toolkit behind the link; empty when it does not say."""
        program = f"{versions.LINK}/bin/nvcc"
        found = NVCC_RELEASE.search(run([program, "--version"], SECONDS, program)) if os.path.exists(program) else None
        return found.group(1) if found else ""


def refusal(release: str, found: alternatives.Alternatives, texts: dict[str, str], check_mode: bool) -> str:
    """Why nothing can be done; empty when it can."""
    if release and (not versions.VERSION.fullmatch(release) or versions.release_of(release) != release):
        return ERR_RELEASE % release
    toolkit = versions.Toolkit(release, release)
    if release and not check_mode and not os.access(f"{toolkit.path}/bin/nvcc", os.X_OK):
        known = ", ".join(found.choices) or "none"
        return ERR_NOT_INSTALLED % (release, toolkit.path, toolkit.package, known)
    if release and os.path.isdir(versions.LINK) and not os.path.islink(versions.LINK):
        return ERR_NO_LINK % versions.LINK
    for line in environment.too_long(texts[environment.ENVIRONMENT_PATH]) if release else []:
        return ERR_LONG % (environment.ENVIRONMENT_PATH, environment.LONGEST_LINE, line[:60])
    return ""


def change(node: Node, release: str, commands: list[list[str]], texts: dict[str, str], before: dict[str, str]) -> str:
    """Change what differs, and look at the result. When something fails, everything is put back."""
    choice = node.alternatives()
    try:
        node.do(commands)
        node.write(texts)
        return verified(node, release)
    except (CommandError, OSError) as error:
        failure = str(error)
    try:
        node.do(alternatives.back(choice, node.alternatives()))
        node.write({path: before[path] for path in texts})
    except (CommandError, OSError) as error:
        node.module.fail_json(msg=NOT_PUT_BACK % (failure, error))
    node.module.fail_json(msg=PUT_BACK % failure)
    return ""


def verified(node: Node, release: str) -> str:
    """The release that nvcc reports, once it is the wanted one."""
    if not release:
        return ""
    found = node.nvcc()
    target = os.path.realpath(versions.LINK)
    if found != release or target != os.path.realpath(versions.Toolkit(release, release).path):
        raise CommandError(ERR_WRONG % (versions.LINK, target, found or "none", release))
    return found


def main() -> None:
    """Compare, refuse, change, verify."""
    module = AnsibleModule(argument_spec={"release": {"type": "str", "default": ""}}, supports_check_mode=True)
    release = str(module.params["release"])
    node = Node(module)
    found = node.alternatives()
    paths = (environment.ENVIRONMENT_PATH, environment.SH_PATH, environment.CSH_PATH)
    before = {path: read_text(path) for path in paths}
    ours = any(before[path] for path in (environment.SH_PATH, environment.CSH_PATH))
    after = environment.wanted(before[environment.ENVIRONMENT_PATH], present=bool(release))
    problem = refusal(release, found, after, module.check_mode)
    if problem:
        module.fail_json(msg=problem)
    path = versions.Toolkit(release, release).path if release else ""
    commands = alternatives.commands(found, path) if release or ours else []
    texts = {name: text for name, text in after.items() if text != before[name]}
    changed = bool(commands or texts)
    nvcc = ""
    if not module.check_mode:
        nvcc = change(node, release, commands, texts, before)
    chosen = alternatives.Alternatives(alternatives.MANUAL if path else alternatives.AUTO, path or found.target)
    diff = [
        {"before_header": name, "after_header": name, "before": before[name], "after": texts[name]} for name in texts
    ]
    if commands:
        diff.append({"before": found.sentence(), "after": chosen.sentence()})
    module.exit_json(changed=changed, toolkit=path, nvcc=nvcc, installed=node.alternatives().choices, diff=diff)


if __name__ == "__main__":
    main()
