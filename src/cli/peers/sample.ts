import type { PeerModel, PeerReference, PeerTuple } from '../../language/peers/peer-model.ts';
import type { PeerQuery } from './peer-source.ts';

/** Returns numbers from 0 to 1, exclusive of 1. */
export type Draw = () => number;

/**
 * Makes a deterministic generator from a seed: mulberry32, a public-domain generator of 32 bits by
 * T. Ettinger.
 */
export function drawOf(seed: number): Draw {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Keeps `size` tuples, each with the same probability: algorithm R (Vitter, 1985). Memory: `size`
 * tuples.
 */
export class Reservoir {
  readonly kept: PeerTuple[] = [];
  readonly #size: number;
  readonly #draw: Draw;
  #seen = 0;

  constructor(size: number, draw: Draw) {
    this.#size = size;
    this.#draw = draw;
  }

  add(tuple: PeerTuple): void {
    this.#seen += 1;
    if (this.kept.length < this.#size) {
      this.kept.push(tuple);
      return;
    }
    const place = Math.floor(this.#draw() * this.#seen);
    if (place < this.#size) this.kept[place] = tuple;
  }
}

/**
 * At most `count` queries about the objects and subjects of tuples; none without tuples. Wildcards
 * are not subjects of queries.
 *
 * Half of them are about a tuple: its object, a relation of that type, its subject, so that some
 * are allowed. The other half take an object of any type and a subject of any kind. Each type has
 * the same weight, so that a few documents are not lost among many members.
 */
export function queriesOf(
  model: PeerModel,
  tuples: readonly PeerTuple[],
  count: number,
  draw: Draw,
): readonly PeerQuery[] {
  const relations = new Map(
    model.types.map(({ name, relations: own }) => [name, own.map((one) => one.name)]),
  );
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(draw() * list.length)];
  const plain = tuples.filter(({ subject }) => subject.id !== '*');
  const objects = byKind(tuples.map(({ object }) => object));
  const subjects = byKind(plain.map(({ subject }) => subject));
  const queries: PeerQuery[] = [];
  for (let tries = 0; queries.length < count && tries < 4 * count; tries++) {
    const tuple = draw() < 0.5 ? pick(plain) : undefined;
    const object = tuple?.object ?? pick(pick(objects) ?? []);
    const subject = tuple?.subject ?? pick(pick(subjects) ?? []);
    const relation = pick(relations.get(object?.type ?? '') ?? []);
    if (object === undefined || relation === undefined || subject === undefined) continue;
    queries.push({ object, relation, subject });
  }
  return queries;
}

/** Distinct references, grouped by type and relation. */
function byKind(references: readonly PeerReference[]): readonly (readonly PeerReference[])[] {
  const kinds = new Map<string, Map<string, PeerReference>>();
  for (const reference of references) {
    const kind = `${reference.type}#${reference.relation}`;
    const known = kinds.get(kind) ?? new Map<string, PeerReference>();
    kinds.set(kind, known.set(reference.id, reference));
  }
  return [...kinds.values()].map((known) => [...known.values()]);
}
