import type { EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import { type NamespaceModel, parseModel } from '../../model/namespace/namespace-model.ts';
import {
  EDGE_NODE_MASK,
  EMPTY_NAME,
  type TupleReader,
  WILDCARD_NODE,
} from '../../model/tuple-reader.ts';
import type { QueryArgs, UserQuery } from '../../protocol/queries.ts';
import { assert } from '../../shared/assert.ts';
import type { QueryGround, QuerySpec } from './query-spec.ts';

/** Numbers thrown away at first, so that near seeds give sequences that have nothing in common. */
const WARM_UP = 16;

/**
 * Numbers that follow from a seed (sfc32, Chris Doty-Humphrey, PractRand): for draws that can be repeated, not for
 * secrets.
 */
export class SeededRandom {
  #a: number;
  #b: number;
  #c = 0x9e37_79b9;
  #counter = 1;

  /** Two unsigned 32-bit numbers. */
  constructor(high: number, low: number) {
    this.#a = high | 0;
    this.#b = low | 0;
    for (let i = 0; i < WARM_UP; i++) this.#next();
  }

  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number {
    assert(bound >= 1 && bound <= 0x1_0000_0000, 'a bound of a draw is positive and has 32 bits');
    return Math.floor((this.#next() / 0x1_0000_0000) * bound);
  }

  /** One of `values`, which has some. */
  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }
}

/** Objects, and users, of which the queries of one call are made, at most. */
const POOL_MAX = 2_048;
/** Entities between two clock reads. */
const ENTITIES_PER_STEP = 4_096;
const QUERIES_PER_STEP = 16;
/** Subjects of a node, and nodes of an object, among which a walk chooses. */
const CHOICES_MAX = 256;
const HOPS_MAX = 8;

/**
 * Queries drawn at random. One half takes objects and users alike, related or not. The other half takes
 * users found by a walk along stored tuples from the object, who are more likely to hold something.
 */
export const drawQueries: QuerySpec<'drawQueries'> = {
  rpc: 'PreviewModel',
  countsItems: true,
  isLong: () => true,
  start: (ground, args) => new DrawTask(ground, args),
};

/** First a sample of objects and users (Vitter's algorithm R, 1985), then the queries. Cost: O(entities + count). */
class DrawTask implements EvaluationTask<readonly UserQuery[]> {
  readonly backstops = 0;
  readonly #ground: QueryGround;
  readonly #reader: TupleReader;
  readonly #random: SeededRandom;
  readonly #count: number;
  readonly #relations: ReadonlyMap<number, readonly string[]>;
  readonly #objects: DrawnSample;
  readonly #users: DrawnSample;
  readonly #namespaces: number[];
  readonly #chunk = new Uint32Array(ENTITIES_PER_STEP);
  readonly #choices = new Uint32Array(CHOICES_MAX);
  readonly #drawn: UserQuery[] = [];
  #cursor = 0;

  constructor(ground: QueryGround, { modelJson, count, seed }: QueryArgs['drawQueries']) {
    this.#ground = ground;
    this.#reader = ground.evaluator.reader;
    this.#random = new SeededRandom(seed[0], seed[1]);
    this.#count = count;
    this.#relations = relationsOf(this.#reader, [ground.model, parseModel(modelJson)]);
    this.#objects = new DrawnSample(this.#random);
    this.#users = new DrawnSample(this.#random);
    this.#namespaces = [EMPTY_NAME, ...this.#relations.keys()];
  }

  run(sliceEndMs: number): 'done' | 'more' {
    const { clock } = this.#ground.context;
    while (this.#collect() || this.#draw()) {
      if (clock.monotonicMs() >= sliceEndMs) return 'more';
    }
    return 'done';
  }

  result(): readonly UserQuery[] {
    return this.#drawn;
  }

  /** Reads some more entities; false once it has seen all. */
  #collect(): boolean {
    const namespace = this.#namespaces[0];
    if (namespace === undefined) return false;
    const reader = this.#reader;
    const count = reader.readEntitiesOf(namespace, this.#cursor, this.#chunk, 0);
    this.#cursor = reader.nextCursor;
    const sample = namespace === EMPTY_NAME ? this.#users : this.#objects;
    for (let i = 0; i < count; i++) sample.offer(this.#chunk[i] as number);
    if (this.#cursor < 0) {
      this.#cursor = 0;
      this.#namespaces.shift();
    }
    return true;
  }

  /** Draws some more; false once there are enough, or none can be drawn. */
  #draw(): boolean {
    const [objects, users] = [this.#objects.entities, this.#users.entities];
    if (objects.length === 0 || users.length === 0) return false;
    for (let i = 0; i < QUERIES_PER_STEP && this.#drawn.length < this.#count; i++) {
      const object = this.#random.of(objects);
      const user = this.#random.below(2) === 0 ? this.#walk(object) : 0;
      this.#drawn.push(this.#query(object, user === 0 ? this.#random.of(users) : user));
    }
    return this.#drawn.length < this.#count;
  }

  #query(object: number, user: number): UserQuery {
    const reader = this.#reader;
    const namespace = reader.namespaceOf(object);
    return {
      namespace: reader.nameText(namespace),
      objectId: reader.entityText(object),
      relation: this.#random.of(this.#relations.get(namespace) ?? []),
      userId: reader.entityText(user),
      contextJson: '',
    };
  }

  /** A user that stored tuples lead to from an object; 0 where the walk ends without one. */
  #walk(object: number): number {
    const reader = this.#reader;
    let entity = object;
    for (let hops = 0; hops < HOPS_MAX; hops++) {
      const node = this.#anyNodeOf(entity);
      if (node === 0) return 0;
      const users = reader.userCount(node);
      const isUser = this.#random.below(users + reader.setCount(node)) < users;
      const subject = this.#anySubjectOf(node, isUser);
      if (subject === WILDCARD_NODE) return 0;
      entity = reader.entityOf(subject);
      if (isUser) return entity;
    }
    return 0;
  }

  /** A node of an entity that has subjects, or 0. */
  #anyNodeOf(entity: number): number {
    const reader = this.#reader;
    const choices = this.#choices;
    let count = 0;
    for (let node = reader.firstNodeOf(entity); node !== 0; node = reader.nextNodeOf(node)) {
      if (count === CHOICES_MAX) break;
      if (reader.userCount(node) + reader.setCount(node) > 0) choices[count++] = node;
    }
    return count === 0 ? 0 : (choices[this.#random.below(count)] as number);
  }

  #anySubjectOf(node: number, isUser: boolean): number {
    const reader = this.#reader;
    const choices = this.#choices;
    const count = isUser
      ? reader.readUsers(node, 0, choices, 0)
      : reader.readSets(node, 0, choices, 0);
    return ((choices[this.#random.below(count)] as number) & EDGE_NODE_MASK) >>> 0;
  }
}

/** A uniform sample of what it was offered. */
class DrawnSample {
  readonly entities: number[] = [];
  readonly #random: SeededRandom;
  #offered = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  offer(entity: number): void {
    this.#offered += 1;
    if (this.entities.length < POOL_MAX) {
      this.entities.push(entity);
      return;
    }
    const slot = this.#random.below(this.#offered);
    if (slot < POOL_MAX) this.entities[slot] = entity;
  }
}

/** Relations that the models name, by namespace, of those that the index has objects of. Sorted. */
function relationsOf(
  reader: TupleReader,
  models: readonly NamespaceModel[],
): ReadonlyMap<number, readonly string[]> {
  const relations = new Map<number, Set<string>>();
  for (const { namespaces } of models) {
    for (const [name, rewrites] of namespaces) {
      const namespace = reader.nameId(name);
      if (namespace <= 0 || rewrites.size === 0) continue;
      const known = relations.get(namespace) ?? new Set();
      for (const relation of rewrites.keys()) known.add(relation);
      relations.set(namespace, known);
    }
  }
  return new Map([...relations].map(([namespace, names]) => [namespace, [...names].toSorted()]));
}
