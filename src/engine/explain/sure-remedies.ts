import { FALSE, TRUE } from '../bound/scope.ts';
import type { DenialGraph } from './denial-graph.ts';
import { keysRead } from './remedy-leaves.ts';

const STEPS_PER_YIELD = 64;

/**
 * Leaves of which one more tuple that names the target certainly makes the root hold, so that it need not be
 * tried: the way there is of unions, of tuples that count, and of exclusions that exclude nobody and do not read
 * that tuple. Necessary for none, sufficient for all. Cost: O(vertices + links) time, no reads.
 */
export function* sureLeaves(
  graph: DenialGraph,
  root: number,
  depthMax: number,
): Generator<undefined, ReadonlySet<number>, undefined> {
  const sure = new Set<number>();
  // No way is longer than there are vertices, so within this bound depth decides nothing.
  if (graph.vertices.length > depthMax || graph.isExhausted) return sure;
  const reached = new Set([root]);
  const excluded = new Set<number>();
  let steps = 0;
  for (const id of reached) {
    const { kind, operands, links } = graph.at(id);
    if (++steps % STEPS_PER_YIELD === 0) yield;
    if (kind === 'userset' || kind === 'any') for (const next of operands) reached.add(next);
    if (kind === 'leaf') {
      sure.add(id);
      for (const { child, value } of links) if (value === TRUE) reached.add(child);
    }
    if (kind !== 'butNot') continue;
    const [include, exclude] = operands as [number, number];
    if (graph.valueOf(exclude) !== FALSE) continue;
    reached.add(include);
    excluded.add(exclude);
  }
  const read = new Set<string>();
  for (const id of excluded) {
    const vertex = graph.at(id);
    if (++steps % STEPS_PER_YIELD === 0) yield;
    for (const next of vertex.operands) excluded.add(next);
    for (const { child } of vertex.links) excluded.add(child);
    if (vertex.kind === 'leaf') for (const key of keysRead(vertex)) read.add(key);
  }
  if (read.size === 0) return sure;
  for (const id of sure) {
    const { entity, relation } = graph.at(id);
    if (read.has(`${entity} ${relation}`)) sure.delete(id);
  }
  return sure;
}
