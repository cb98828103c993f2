# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpu-cluster-run: runs a training script on the nodes of the cluster, and leaves nothing behind.

``main`` is the program, which role launcher installs on every member as one file.  It is three programs in one;
docs/launching.md draws how they work together::

    launcher   on the node where the user types: plans the job, shows its lines, decides how it ends
    agent      one per node, started over ssh: starts processes, writes logs, kills everything when the launcher is gone
    rank       one per rank, the parent of the script's process: gets its output to the agent, and its exit code

Launcher and agent exchange JSON, one object per line, over the standard streams of ssh.  Rank and agent meet on a Unix
socket that is named after the job, in a folder that only their user can enter.  Needs Python 3.9 and its standard
library.

From the command line to a job for each node:
    ``typed``, ``arguments``, ``cluster`` (members and port plan), ``plan``, ``dry_run``, ``users``, ``refusal``
What runs on a node, by mode and option:
    ``commands`` (torchrun, mpirun, horovodrun), ``variables`` (the environment of ranks), ``containers`` (--image),
    ``elastic`` (numbers and rendezvous), ``etcd``
The launcher while the job runs, one class over several modules, each built on the one before:
    ``launcher_state``, ``launcher_ending``, ``launcher_elastic`` (nodes that are lost, and spares),
    ``launcher_connections``, ``launcher_watching``, ``launcher_answers`` (what agents say), ``launcher``; beside them
    ``nodes``, ``ssh``, ``screen``, ``explanation``
The agent, in the same way:
    ``agent_state``, ``agent_ranks``, ``agent_prepare``, ``agent``; beside them ``logs``, and before the start
    ``node_checks``, ``storage``, ``node_facts``
The rank:
    ``rank``
What two or three of them share:
    ``messages``, ``streams``, ``processes``, ``meeting`` (sockets and locks), ``seconds``, ``paths``
"""
