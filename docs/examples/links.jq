# The links of a report.json (docs/reading-a-report.md), for jq:  jq -c -L docs/examples 'include "links"; links("mesh")' report.json
# $key: mesh, latency_ms, bytes_per_second or retransmits. A further rail: .rails[0] | links("mesh").
def links($key):
  .links.nodes as $nodes
  | .links[$key] as $table
  | $nodes[] as $from
  | [$nodes, (($table.rows[$from] // $table.usual // "") / "")]
  | transpose[]
  | select(.[0] != $from)
  | {from: $from, to: .[0], value: $table.values[.[1] // "-"]};
