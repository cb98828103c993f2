# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the role are the settings of the check."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from ansible_collections.baremetal.gpu_cluster.plugins.filter.report_folder import report_folder
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.agent import rank_gpu, steps
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import settings
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.protocol.constants import BACKENDS

ROLE = Path(__file__).parents[4] / "roles" / "cluster_check"
DEFAULTS = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
OPTIONS = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]


def test_they_have_the_same_defaults() -> None:
    """As far as no other role says where PyTorch and Open MPI are, and no inventory has reports beside it."""
    templar = Templar(DataLoader(), variables={})
    templates = {name: trust_as_template(value) for name, value in DEFAULTS.items() if "{{" in str(value)}
    assert templates.pop("cluster_check_report_dir").endswith("baremetal.gpu_cluster.report_folder }}")
    assert set(templates) == {"cluster_check_torch_python", "cluster_check_openmpi_prefix"}
    made = {name: templar.template(value) for name, value in templates.items()}
    made["cluster_check_report_dir"] = report_folder([])
    found = {f"cluster_check_{name}": value for name, value in asdict(settings.Settings()).items()}
    assert found == {**DEFAULTS, **made}
    # That of the folder depends on the inventory, and its description has it.
    told = {name: value for name, value in DEFAULTS.items() if name != "cluster_check_report_dir"}
    assert {name: option["default"] for name, option in OPTIONS.items() if name in told} == told
    assert set(OPTIONS) == set(DEFAULTS)


@pytest.mark.parametrize("name", sorted(name for name, option in OPTIONS.items() if "choices" in option))
def test_they_have_the_same_choices(name: str) -> None:
    read = settings.READERS[name.removeprefix("cluster_check_")]
    assert [read(choice) for choice in OPTIONS[name]["choices"]] == OPTIONS[name]["choices"]
    with pytest.raises(ValueError, match=", ".join(OPTIONS[name]["choices"])):
        read("other")


def test_all_know_the_same_backends() -> None:
    assert OPTIONS["cluster_check_backend"]["choices"] == list(BACKENDS)
    assert steps.SPECS["go"]["backend"]["choices"] == list(BACKENDS)
    assert list(rank_gpu.DEVICES) == list(rank_gpu.PROCESS_GROUPS) == list(BACKENDS)
