#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module package_repositories: the repositories a node needs, asked before anything is written."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_repositories
short_description: Set up dnf's repositories, their pinned keys and the proxy, after asking every mirror
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Asks every wanted repository, key and wheel index from the node itself, all at the same time and past dnf's cache.
    When one of them cannot be used, all problems are named and nothing is changed.
  - Knows CRB, EPEL and NVIDIA's repository for EL 9 and 10 on x86_64 and aarch64. For these it first takes what the
    node has. An enabled definition of the node, or another enabled repository that offers the same packages, is left
    alone. A definition that is switched off is switched on; CRB only where the node also uses BaseOS, or something else
    of the same file.
    Otherwise the maker's address is used.
  - An entry with an address of the site, such as a mirror, replaces what the node defines under the same id. That is
    switched off, and nothing else in its file changes.
  - Own definitions are in one file, C(/etc/yum.repos.d/gpu-cluster.repo), under ids that begin with C(gpu-cluster-).
    What is no longer wanted leaves it. Signatures of packages are always checked.
  - A key is taken when it has the pinned fingerprint, is not expired and comes without other keys. It is imported into
    rpm. rpm keeps the key of a repository that is dropped, and a warning says how to remove it.
  - New definitions are tried by dnf in a folder of their own before they count. A change that fails is taken back.
options:
  repositories:
    description: The wanted repositories, each id once.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description:
          - V(crb), V(epel) and V(nvidia) are known and need nothing else.
          - An id that the node defines needs nothing else either; it is switched on.
          - Another id needs an address and a key.
        type: str
        required: true
      state:
        description: With V(disabled), the node's own repository of this id is switched off.
        type: str
        choices: [enabled, disabled]
        default: enabled
      name:
        description: Title of the repository.
        type: str
      baseurl:
        description:
          - Folder that holds C(repodata/), as V(http://), V(https://) or V(file:///) on the node.
          - C($releasever) becomes the major version, C($basearch) the architecture, and C($nvidia_arch) what NVIDIA
            calls the architecture (C(sbsa) for aarch64).
        type: str
      metalink:
        description: Address of a metalink instead of a folder.
        type: str
      gpg_key:
        description:
          - The armoured public key, as V(http://), V(https://) or V(file:///) on the node; the same placeholders.
          - Anything else is the whole path of a file on the controller, whose text is in O(key_texts).
        type: str
      gpg_fingerprints:
        description: Whole fingerprints of all keys in the file, blanks allowed.
        type: list
        elements: str
      packages:
        description: Packages that the repository must offer for the node's architecture.
        type: list
        elements: str
      exclude_packages:
        description: Packages that are never taken from it; patterns as dnf knows them.
        type: list
        elements: str
      proxy:
        description: Proxy of this repository alone; V(none) goes without one.
        type: str
  key_texts:
    description: Texts of the keys that are files on the controller, by the name given in O(repositories[].gpg_key).
    type: dict
    default: {}
  proxy:
    description:
      - Proxy for all repositories of the node, kept in C(/etc/dnf/dnf.conf), as V(http://HOST:PORT).
      - V(none) removes that line. An empty text leaves the file alone; what is in it is still used for asking.
    type: str
    default: ""
  ca_certificate:
    description:
      - File on the node with the authority that has signed the mirrors' certificates. It counts for all own
        definitions, and no other does then.
    type: str
    default: ""
  timeout_seconds:
    description: How long to wait for a connection, and for each further piece of an answer, 1 to 60 s.
    type: int
    default: 5
  packages:
    description:
      - Packages that are going to be pinned later, as M(baremetal.gpu_cluster.pinned_packages) takes them. One that the
        repositories do not have, as they are going to be, is refused before anything is changed.
      - What is installed as wanted is not asked for.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the package.
        type: str
        required: true
      version:
        description: Its version; empty takes any.
        type: str
        default: ""
      family:
        description: Packages with the same family must have a version in common.
        type: str
      variable:
        description: How messages call the version, for example V(nccl_version).
        type: str
        default: ""
  wheels:
    description: Where pip is going to look; asked as well, and never changed.
    type: dict
    suboptions:
      index_url:
        description:
          - Address of a package index. When it and O(wheels.folder) are empty, the index that pip on the node is
            configured for is asked, or pip's default. Only a page without the version counts then, and not an index
            that does not answer.
        type: str
        default: ""
      folder:
        description: Folder with wheels on the node. It wins over the index, as it does with pip's C(--no-index).
        type: str
        default: ""
      requirements:
        description: Packages that must be there, as C(name==version).
        type: list
        elements: str
        default: []
      prefix:
        description: A Python environment. What is installed in it already is not looked for.
        type: str
        default: ""
      variables:
        description:
          - How messages call C(folder) and C(index_url), and under C(requirements) the pins, by the name of their
            package. C(*) stands for all other packages.
        type: dict
        default: {}
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Mirrors are asked, and new definitions are tried by dnf, which may fill its cache.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: EL 9 and 10 with dnf.
"""

EXAMPLES = r"""
- name: Use what the node has, and the makers' repositories for the rest
  baremetal.gpu_cluster.package_repositories:
    repositories:
      - id: crb
      - id: epel
      - id: nvidia

- name: Use a mirror of the site
  baremetal.gpu_cluster.package_repositories:
    repositories:
      - id: nvidia
        baseurl: http://mirror.example.com/cuda/rhel$releasever/$nvidia_arch
        gpg_key: http://mirror.example.com/keys/D42D0685.pub
        gpg_fingerprints: [610C 7B14 E068 A878 070D A4E9 9CD0 A493 D42D 0685]
"""

RETURN = r"""
repositories:
  description:
    - What became of each entry. C(own) means that the node defines and uses it, C(offered) that other repositories of
      the node offer its packages, C(unused) that the node has no definition in use and none is known, C(switched_on)
      and C(off) that a definition of the node is switched, C(defined) that it is in our file.
  returned: success
  type: list
  elements: dict
  sample:
    - id: epel
      action: offered
      repositories: [site-everything]
asked:
  description: Every address that was asked, with the seconds that took and the proxy between, if any.
  returned: always when addresses were asked
  type: list
  elements: dict
  sample:
    - url: http://mirror.example.com/cuda/rhel9/x86_64/repodata/repomd.xml
      answer: ok
      seconds: 0.012
      proxy: ""
problems:
  description: Why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
  sample: []
keys:
  description: The pinned keys of the repositories in our file.
  returned: success
  type: list
  elements: dict
  sample:
    - fingerprint: 610C7B14E068A878070DA4E99CD0A493D42D0685
      repository: gpu-cluster-nvidia
      path: /etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-cluster-nvidia
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources import run, system
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._package_sources.spec import DISABLED, ENABLED

NOT_CHANGED = "Nothing was changed.\n%s"


def argument_spec() -> dict[str, object]:
    """The options, as documented."""
    repository = {
        "id": {"type": "str", "required": True},
        "state": {"type": "str", "choices": [ENABLED, DISABLED], "default": ENABLED},
        "name": {"type": "str"},
        "baseurl": {"type": "str"},
        "metalink": {"type": "str"},
        "gpg_key": {"type": "str", "no_log": False},
        "gpg_fingerprints": {"type": "list", "elements": "str"},
        "packages": {"type": "list", "elements": "str"},
        "exclude_packages": {"type": "list", "elements": "str"},
        "proxy": {"type": "str"},
    }
    wheels = {
        "index_url": {"type": "str", "default": ""},
        "folder": {"type": "str", "default": ""},
        "requirements": {"type": "list", "elements": "str", "default": []},
        "prefix": {"type": "str", "default": ""},
        "variables": {"type": "dict", "default": {}},
    }
    package = {
        "name": {"type": "str", "required": True},
        "version": {"type": "str", "default": ""},
        "family": {"type": "str"},
        "variable": {"type": "str", "default": ""},
    }
    return {
        "repositories": {"type": "list", "elements": "dict", "required": True, "options": repository},
        "key_texts": {"type": "dict", "default": {}, "no_log": False},
        "proxy": {"type": "str", "default": ""},
        "ca_certificate": {"type": "str", "default": ""},
        "timeout_seconds": {"type": "int", "default": 5},
        "packages": {"type": "list", "elements": "dict", "default": [], "options": package},
        "wheels": {"type": "dict", "options": wheels},
    }


def main() -> None:
    """Look, ask, decide, and change what differs."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        outcome = run.outcome(module, module.params, module.check_mode)
    except run.RefusedError as error:
        sentences = "\n".join(problem.sentence() for problem in error.problems)
        module.fail_json(
            msg=NOT_CHANGED % sentences, problems=[problem.as_dict() for problem in error.problems], asked=error.asked
        )
    except (system.SystemFailure, OSError) as error:
        module.fail_json(msg=f"{error}. Everything is as it was before.")
    for sentence in outcome.pop("warnings"):
        module.warn(sentence)
    module.exit_json(**outcome)


if __name__ == "__main__":
    main()
