# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Sphinx for the site; tools/docs_site.py writes the folder that it reads."""

project = "baremetal.gpu_cluster"
copyright = "2026, baremetal.gpu_cluster contributors"
author = "baremetal.gpu_cluster contributors"
html_title = "baremetal.gpu_cluster"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The date of a build would make two builds of one tree differ.
html_last_updated_fmt = None
html_copy_source = False
extensions = ["myst_parser", "sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
# The anchors of headings are those that GitHub shows.
myst_heading_anchors = 6
myst_enable_extensions = ["html_image"]
highlight_language = "text"
# A build that fetched the index of Ansible's own documentation would need a network: the labels that are used stand in
# a file that tools/docs_site.py writes.
intersphinx_mapping = {"ansible": ("https://docs.ansible.com/ansible/latest/", "ansible.inv")}
