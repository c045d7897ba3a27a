import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, type Service } from '../support/service.ts';

/** Numbers that follow from a seed, which is printed: FAULT_SEED repeats a run's choices. */
export interface Dice {
  /** An integer in [0, limit). */
  below(limit: number): number;
}

/** Mulberry32. */
export function seededDice(what: string): Dice {
  const given = process.env['FAULT_SEED'];
  const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
  process.stdout.write(`${what}: FAULT_SEED=${seed}\n`);
  let state = seed;
  return {
    below(limit) {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
    },
  };
}

/** Where to send a call, and the credentials. */
export type Target = Pick<Service, 'baseUrl' | 'token' | 'adminSecret'>;

export type Answer = Awaited<ReturnType<typeof call>>;

/** As `call`; undefined when the connection was refused or lost. */
export async function attempt(
  service: Target,
  method: string,
  body: unknown,
): Promise<Answer | undefined> {
  try {
    return await call(service, method, body);
  } catch {
    return undefined;
  }
}

/** Throws with what was said unless the answer is a success. */
export function ok(answer: Answer | undefined): Record<string, unknown> {
  if (answer?.status === 200) return answer.body;
  throw new Error(`not a success: ${JSON.stringify(answer ?? 'connection lost')}`);
}

/** Facts that take long to come, such as the end of a lease, are not looked for as often. */
const LOOK_MS_MAX = 40;

export async function until(fact: () => boolean | Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await fact()); looks++) await sleep(Math.min(5 + looks, LOOK_MS_MAX));
}

/** A write of several tuples that belong together, and what its caller was told. */
export type Batch = {
  readonly tenantId: string;
  readonly objectId: string;
  readonly size: number;
  /** The tuples are there, are not, or (the caller heard nothing) either of them. */
  state: 'present' | 'absent' | 'unknown';
  token: string;
};

/** The body of a write that inserts or deletes the whole batch. */
export function writeOf(batch: Batch, op: 'OP_INSERT' | 'OP_DELETE'): object {
  const updates = Array.from({ length: batch.size }, (_, index) => ({
    op,
    tuple: {
      namespace: 'resource',
      object_id: batch.objectId,
      relation: 'viewer',
      subject: { user_id: `u${index}` },
    },
  }));
  return { tenant_id: batch.tenantId, updates };
}

/**
 * Writes batches, now and then deletes one again, until `isOver`, and notes what it was told.
 * Errors: throws at any answer but a success and `unavailable`.
 */
export async function writeBatches(
  service: Target,
  name: string,
  tenants: readonly string[],
  dice: Dice,
  batches: Batch[],
  isOver: () => boolean,
): Promise<void> {
  const mine: Batch[] = [];
  for (let number = 0; !isOver(); number++) {
    const old = mine.find((batch) => batch.state === 'present');
    if (old !== undefined && dice.below(4) === 0) {
      old.state = 'unknown';
      const token = tokenOf(await attempt(service, WRITE, writeOf(old, 'OP_DELETE')));
      if (token === undefined) continue;
      old.state = 'absent';
      old.token = token;
      continue;
    }
    const batch: Batch = {
      tenantId: tenants[dice.below(tenants.length)] ?? '',
      objectId: `${name}-${number}`,
      size: 1 + dice.below(8),
      state: 'unknown',
      token: '',
    };
    mine.push(batch);
    batches.push(batch);
    const token = tokenOf(await attempt(service, WRITE, writeOf(batch, 'OP_INSERT')));
    if (token === undefined) {
      await sleep(2);
      continue;
    }
    batch.state = 'present';
    batch.token = token;
  }
}

const WRITE = 'AuthzService/WriteRelationTuples';

/** undefined: the caller does not know what became of the write. */
function tokenOf(answer: Answer | undefined): string | undefined {
  if (answer === undefined) return undefined;
  if (answer.status === 200) return String(answer.body['consistency_token']);
  if (answer.status === 503 && answer.body['code'] === 'unavailable') return undefined;
  throw new Error(`a write was answered ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** What contradicts the batches: by ReadRelationTuples, and by Check with and without the token. */
export async function contradictions(
  service: Target,
  tenants: readonly string[],
  batches: readonly Batch[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const tenantId of tenants) {
    const counts = await countTuples(service, tenantId);
    for (const batch of batches.filter((one) => one.tenantId === tenantId)) {
      const count = counts.get(batch.objectId) ?? 0;
      const isWhole = count === batch.size;
      const fits =
        batch.state === 'unknown'
          ? isWhole || count === 0
          : isWhole === (batch.state === 'present');
      if (!fits || (count !== 0 && !isWhole)) {
        wrong.push(`${batch.objectId} (${batch.state}) has ${count} of ${batch.size}`);
      }
      if (batch.token === '') continue;
      for (const token of [batch.token, '']) {
        const question = {
          tenant_id: tenantId,
          namespace: 'resource',
          object_id: batch.objectId,
          relation: 'viewer',
          subject_user_id: `u${batch.size - 1}`,
          at_least_consistency_token: token,
        };
        const { allowed } = ok(await attempt(service, 'AuthzService/Check', question));
        if (allowed !== isWhole) wrong.push(`${batch.objectId}: Check says ${String(allowed)}`);
      }
    }
  }
  return wrong;
}

async function countTuples(service: Target, tenantId: string): Promise<Map<string, number>> {
  const filter = { tenant_id: tenantId, namespace: 'resource' };
  const body = ok(await attempt(service, 'AuthzService/ReadRelationTuples', filter));
  const counts = new Map<string, number>();
  for (const { object_id } of body['tuples'] as readonly { object_id: string }[]) {
    counts.set(object_id, (counts.get(object_id) ?? 0) + 1);
  }
  return counts;
}
