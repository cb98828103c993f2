# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only script of a report's page: another order of the nodes in the maps, and pages of findings that are printed.

It takes nothing from the report but numbers, and the page is whole without it.  The policy of the page names its hash,
so a browser runs this text and no other.
"""

from __future__ import annotations

import base64
import hashlib

TEXT = """
"use strict";
var opened = [];
addEventListener("beforeprint", function () {
  opened = Array.from(document.querySelectorAll("details.page:not([open])"));
  opened.forEach(function (one) { one.open = true; });
});
addEventListener("afterprint", function () { opened.forEach(function (one) { one.open = false; }); });

function arrange(table, place, first) {
  var columns = Array.from(table.tHead.rows[0].cells).slice(1).map(function (cell, number) {
    return { at: number + 1, node: cell.dataset.node };
  });
  function order(one, two) { return place[one.node] - place[two.node]; }
  columns.sort(order);
  [table.tHead.rows[0]].concat(Array.from(table.tBodies[0].rows)).forEach(function (row) {
    var cells = Array.from(row.cells);
    columns.forEach(function (column, number) {
      var cell = cells[column.at];
      cell.classList.toggle("edge", number > 0 && first[column.node] === true);
      row.append(cell);
    });
  });
  Array.from(table.tBodies[0].rows).map(function (row) {
    return { row: row, node: row.cells[0].dataset.node };
  }).sort(order).forEach(function (one, number) {
    one.row.classList.toggle("edge", number > 0 && first[one.node] === true);
    table.tBodies[0].append(one.row);
  });
}

var choice = document.getElementById("order");
if (choice) {
  choice.hidden = false;
  choice.querySelector("select").addEventListener("change", function (event) {
    var place = {}, first = {}, count = 0;
    event.target.value.split("|").forEach(function (group) {
      group.split(" ").forEach(function (node, number) {
        place[node] = count++;
        first[node] = number === 0;
      });
    });
    document.querySelectorAll("table.nodes").forEach(function (table) { arrange(table, place, first); });
  });
}
"""
HASH = base64.b64encode(hashlib.sha256(TEXT.encode()).digest()).decode("ascii")
