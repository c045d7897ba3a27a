import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../support/postgres.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { DrivenInstance, type Fault } from './driven-instance.ts';

/*
 * The events of the model (model.ts), in orders that chance makes, at the production code on a real
 * database. What is checked is the same: nobody answers from memory below what anybody was told.
 */

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 20 });
});
afterAll(async () => await database.drop());

const INSTANCES = 2;
const STEPS = 60;
const EVENTS = [
  'statement',
  'statement',
  'statement',
  'write',
  'look',
  'told',
  'claim',
  'lease',
  'lose',
  'wake',
  'crash',
] as const;
type Move = { readonly event: (typeof EVENTS)[number]; readonly at: number; readonly pick: number };

const MOVES = fc.array(
  fc.record({
    event: fc.constantFrom(...EVENTS),
    at: fc.nat(INSTANCES - 1),
    pick: fc.nat(99),
  }),
  { minLength: STEPS, maxLength: STEPS },
);

class Walk {
  readonly stale: string[] = [];
  readonly failed: string[] = [];
  readonly #faults: ReadonlySet<Fault>;
  readonly #instances: (DrivenInstance | undefined)[] = [];
  readonly #started = new WeakSet<DrivenInstance>();
  readonly #open = new Set<Promise<unknown>>();
  readonly #looks: { answer: () => number; from: number }[] = [];
  #told = 0;
  #objects = 0;
  #isEnding = false;

  constructor(faults: ReadonlySet<Fault>) {
    this.#faults = faults;
  }

  /** The first is alone, and the second is about to register. */
  async begin(): Promise<void> {
    this.#start(0, false);
    await Promise.all(this.#open);
    this.#instances[0]?.hold();
    this.#start(1);
  }

  async run(moves: readonly Move[]): Promise<void> {
    for (const move of moves) {
      await this.#make(move);
      // What follows without the network has then happened.
      for (let i = 0; i < 3; i++) await turn();
      this.check();
      if (this.stale.length > 0) break;
    }
  }

  /** Lets everything go on, until each write is answered, and ends. */
  async end(): Promise<void> {
    this.#isEnding = true;
    for (const instance of this.#instances) instance?.free();
    while (this.#open.size > 0) {
      await this.endLeases();
      await this.#wake();
      await Promise.race([...this.#open, sleep(20)]);
    }
    this.check();
    for (const instance of this.#instances) await instance?.stop();
  }

  /** A look of an instance, answered at once. */
  async tellOfLook(index: number): Promise<void> {
    const from = this.#told;
    this.#tell((await this.#at(index).look())(), from);
  }

  write(index: number): void {
    this.#writeAs(this.#at(index));
  }

  /** The statement that an instance sends is done, and its answer does not come. */
  async doFirst(index: number): Promise<void> {
    const { held } = this.#at(index);
    while (held.size === 0) await turn();
    for (const statement of held) await statement.execute();
  }

  /** Nothing holds the statements of an instance back any more, until it has started. */
  async goOn(index: number): Promise<void> {
    const instance = this.#at(index);
    instance.free();
    while (!this.#started.has(instance)) await turn();
  }

  async whenTold(revision: number): Promise<void> {
    while (this.#told < revision) await turn();
  }

  async whenAlone(index: number): Promise<void> {
    while (this.#at(index).membership.lease.mode !== 'alone') {
      await this.#wake();
      await sleep(5);
    }
  }

  async endLease(index: number): Promise<void> {
    await this.#endLease(this.#at(index));
  }

  /** Of those that have crashed. */
  async endLeases(): Promise<void> {
    const ids = this.#instances.map((instance) => instance?.membership.lease.instanceId ?? null);
    await this.#endLeases('(id = any ($1::uuid[])) is not true', [ids]);
  }

  async crash(index: number): Promise<void> {
    const instance = this.#at(index);
    this.#instances[index] = undefined;
    await instance.crash();
  }

  #at(index: number): DrivenInstance {
    const instance = this.#instances[index];
    if (instance === undefined) throw new Error('no such instance');
    return instance;
  }

  #start(index: number, isHeld = true): void {
    const instance = new DrivenInstance(database, this.#faults);
    if (isHeld && !this.#isEnding) instance.hold();
    this.#instances[index] = instance;
    const starting = instance.membership.start().then(
      () => void this.#started.add(instance),
      // As a process whose start fails, and that is started again.
      async () => {
        if (this.#instances[index] === instance) await this.#restart(instance, index);
      },
    );
    this.#keep(starting);
  }

  #keep(task: Promise<unknown>): void {
    this.#open.add(task);
    void task.finally(() => this.#open.delete(task));
  }

  async #make({ event, at, pick }: Move): Promise<void> {
    const instance = this.#instances[at];
    if (instance === undefined) return;
    const held = [...instance.held];
    const one = held[pick % Math.max(1, held.length)];
    switch (event) {
      case 'statement':
        if (one?.phase === 'sent') return await one.execute();
        return one?.answer();
      case 'lose':
        // As seldom as it is: otherwise hardly anything gets through.
        if (pick < 20) one?.lose();
        return;
      case 'write':
        if (this.#objects < 6 && this.#started.has(instance)) this.#writeAs(instance);
        return;
      case 'look':
        this.#looks.push({ from: this.#told, answer: await instance.look() });
        return;
      case 'told': {
        const [look] = this.#looks.splice(pick % Math.max(1, this.#looks.length), 1);
        if (look !== undefined) this.#tell(look.answer(), look.from);
        return;
      }
      case 'claim':
        return instance.passClaim();
      case 'lease':
        return await this.#endLease(instance);
      case 'wake':
        return await this.#wake();
      case 'crash':
        if (pick < 30) await this.#restart(instance, at);
    }
  }

  #writeAs(instance: DrivenInstance): void {
    const objectId = `o${this.#objects++}`;
    const writing = instance.write(objectId).then(
      (revision) => this.#tell(revision, 0),
      // Of an instance that crashed nobody is told anything.
      (error: unknown) => {
        if (this.#instances.includes(instance)) this.failed.push(`${objectId}: ${String(error)}`);
      },
    );
    this.#keep(writing);
  }

  async #restart(instance: DrivenInstance, at: number): Promise<void> {
    this.#instances[at] = undefined;
    await instance.crash();
    this.#start(at);
  }

  /** By the clocks: not while its owner may still answer from memory. */
  async #endLease(instance: DrivenInstance): Promise<void> {
    instance.passClaim();
    await this.#endLeases('id = $1', [instance.membership.lease.instanceId ?? null]);
  }

  async #endLeases(where: string, values: unknown[] = []): Promise<void> {
    await database.pool.query(
      `update instance set lease_until = clock_timestamp() - interval '1 s' where ${where}`,
      values,
    );
  }

  async #wake(): Promise<void> {
    await database.pool.query(`select pg_notify('gatehouse_instance', 'test')`);
  }

  #tell(revision: number, from: number): void {
    if (revision < from) this.stale.push(`a look answered ${revision} after ${from}`);
    this.#told = Math.max(this.#told, revision);
  }

  check(): void {
    this.#instances.forEach((instance, index) => {
      const revision = instance?.peek();
      if (revision !== undefined && revision < this.#told) {
        this.stale.push(`instance ${index} answers ${revision} after ${this.#told}`);
      }
    });
  }
}

async function walk(moves: readonly Move[], faults: readonly Fault[] = []): Promise<Walk> {
  await database.pool.query('truncate instance, shard, tuple_change, relation_tuple');
  const made = new Walk(new Set(faults));
  try {
    await made.begin();
    await made.run(moves);
  } finally {
    await made.end();
  }
  return made;
}

describe('the code of instances under the events of the model', { timeout: 300_000 }, () => {
  test('answers nothing stale, and every write ends', async () => {
    await fc.assert(
      fc.asyncProperty(MOVES, async (moves) => {
        const { stale, failed } = await walk(moves);
        expect({ stale, failed }).toEqual({ stale: [], failed: [] });
      }),
      { numRuns: byLength(6, 40), endOnFailure: true },
    );
  });

  inShort(describe).each<{ fault: Fault; play: (walk: Walk) => Promise<void> }>([
    {
      fault: 'commits are not hidden',
      play: async (made) => {
        await made.tellOfLook(0);
        made.write(0);
        await made.doFirst(0);
        await made.tellOfLook(1);
      },
    },
    {
      fault: 'the clock stands still',
      play: async (made) => {
        await made.tellOfLook(0);
        await made.endLease(0);
        await made.goOn(1);
        made.write(1);
        await made.whenTold(1);
      },
    },
    {
      fault: 'heads are not forgotten',
      play: async (made) => {
        await made.tellOfLook(0);
        await made.goOn(0);
        await made.goOn(1);
        made.write(1);
        await made.whenTold(1);
        await made.crash(1);
        await made.endLeases();
        await made.whenAlone(0);
      },
    },
  ])('where $fault', ({ fault, play }) => {
    test.each([true, false])('is left out: %s', async (isLeftOut) => {
      await database.pool.query('truncate instance, shard, tuple_change, relation_tuple');
      const made = new Walk(new Set(isLeftOut ? [fault] : []));
      await made.begin();
      await play(made);
      made.check();
      await made.end();
      expect(made.stale.length > 0).toBe(isLeftOut);
    });
  });
});
