#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module package_repositories: the repositories a node needs, asked before anything is written."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_repositories
short_description: Configure dnf's repositories, their pinned keys and the proxy, after a test of every mirror
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Queries every wanted repository, key and wheel index from the node, in parallel and without dnf's cache. If one of
    them cannot be used, all problems are listed and nothing is changed.
  - Knows CRB, EPEL and NVIDIA's repository for EL 9 and 10 on x86_64 and aarch64. For these the definitions of the node
    come first. An enabled definition of the node, or another enabled repository that offers the same packages, is not
    changed. A disabled definition is enabled; CRB only if the node also uses BaseOS or another repository of the same
    file. Otherwise the vendor's address is used.
  - An entry with an address of the site, such as a mirror, replaces the node's definition with the same id. That
    definition is disabled, and its file does not change otherwise.
  - Definitions of this module are in C(/etc/yum.repos.d/gpu-cluster.repo), with ids that begin with C(gpu-cluster-).
    Unwanted definitions are removed from the file. Signatures of packages are always checked.
  - A key is accepted if it has the pinned fingerprint, is not expired and its file has no other keys. It is imported
    into rpm. rpm keeps the key of a removed repository, and a warning says how to remove the key.
  - dnf tests new definitions in a separate folder before they are installed. A change that fails is reverted.
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
          - An id that the node defines needs nothing else either; the repository is enabled.
          - Another id needs an address and a key.
        type: str
        required: true
      state:
        description: V(disabled) disables the node's own repository with this id.
        type: str
        choices: [enabled, disabled]
        default: enabled
      name:
        description: Title of the repository.
        type: str
      baseurl:
        description:
          - Folder that holds C(repodata/), as V(http://), V(https://) or V(file:///) on the node.
          - C($releasever) becomes the major version, C($basearch) the architecture, and C($nvidia_arch) NVIDIA's name
            of the architecture (C(sbsa) for aarch64).
        type: str
      metalink:
        description: Address of a metalink instead of a folder.
        type: str
      gpg_key:
        description:
          - The armoured public key, as V(http://), V(https://) or V(file:///) on the node; the same placeholders.
          - Any other value is the absolute path of a file on the controller, whose text is in O(key_texts).
        type: str
      gpg_fingerprints:
        description: Full fingerprints of all keys in the file, blanks allowed.
        type: list
        elements: str
      packages:
        description: Packages that the repository must offer for the node's architecture.
        type: list
        elements: str
      exclude_packages:
        description: Packages that are never installed from this repository; patterns of dnf are allowed.
        type: list
        elements: str
      proxy:
        description: Proxy for this repository; V(none) uses no proxy.
        type: str
  key_texts:
    description: Texts of the keys that are files on the controller, by the name given in O(repositories[].gpg_key).
    type: dict
    default: {}
  proxy:
    description:
      - Proxy for all repositories of the node, kept in C(/etc/dnf/dnf.conf), as V(http://HOST:PORT).
      - V(none) removes that line. With an empty string the file does not change; its proxy is still used for the
        queries.
    type: str
    default: ""
  ca_certificate:
    description:
      - File on the node with the certificate authority of the mirrors. It applies to all definitions of this module,
        instead of the authorities of the system.
    type: str
    default: ""
  timeout_seconds:
    description: Timeout to connect, and for each further read, 1 to 60 s.
    type: int
    default: 5
  packages:
    description:
      - Packages that later tasks pin, in the form of M(baremetal.gpu_cluster.pinned_packages). A package that the
        future repositories do not have is refused before anything is changed.
      - Packages that are already installed as wanted are not queried.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the package.
        type: str
        required: true
      version:
        description: Its version; empty accepts any version.
        type: str
        default: ""
      family:
        description: Packages with the same family must have a version in common.
        type: str
      variable:
        description: Name of the version in messages, for example V(nccl_version).
        type: str
        default: ""
  wheels:
    description: Sources of pip. They are queried too, and never changed.
    type: dict
    suboptions:
      index_url:
        description:
          - Address of a package index. If it and O(wheels.folder) are empty, the index of pip's configuration on the
            node, or pip's default, is queried. Then only a page without the version is a problem, not an index that
            does not answer.
        type: str
        default: ""
      prefer_pip_configuration:
        description: Use O(wheels.index_url) only if pip's configuration on the node names no index and no folder.
        type: bool
        default: false
      folder:
        description: Folder with wheels on the node. It overrides the index, like pip's C(--no-index).
        type: str
        default: ""
      requirements:
        description: Packages that must be available, as C(name==version).
        type: list
        elements: str
        default: []
      prefix:
        description: A Python environment. Packages that are installed there are not queried.
        type: str
        default: ""
      variables:
        description:
          - Names in messages for C(folder) and C(index_url), and under C(requirements) for the pins, by package name.
            C(*) stands for all other packages.
        type: dict
        default: {}
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Mirrors are queried, and dnf tests new definitions, which may fill its cache.
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
  description: Every queried address, with the duration in seconds and the proxy, if any.
  returned: always when addresses were asked
  type: list
  elements: dict
  sample:
    - url: http://mirror.example.com/cuda/rhel9/x86_64/repodata/repomd.xml
      answer: ok
      seconds: 0.012
      proxy: ""
problems:
  description: Reasons why nothing was changed, each with C(variable), C(value), C(rule) and C(fix).
  returned: on failure because of them
  type: list
  elements: dict
  sample: []
keys:
  description: The pinned keys of the repositories in the file of this module.
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
        "prefer_pip_configuration": {"type": "bool", "default": False},
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
