import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Management, createManagement } from '../../src/authz/management.ts';
import type { RawMember } from '../../src/services/groups/group-input.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { IdSource } from '../../src/shared/ids.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import {
  GroupModel,
  brokenRows,
  enrolledMembers,
  replayedTuples,
  storedTuples,
  tuplesOfRows,
} from '../support/derived-tuples.ts';
import { type TestDatabase, createTestDatabase } from '../support/postgres.ts';
import { type TestServices, createTestServices } from '../support/services.ts';
import { byLength } from '../support/test-length.ts';

/*
 * After any sequence of operations of the management services the tuples that exist are exactly those
 * that the rows ask for and the plain memberships of groups: nothing is half done or left behind. The
 * first test runs one after the other and knows every plain membership; the second lets batches race
 * on two instances, and asks for what must hold whoever was first.
 */
let database: TestDatabase;
let instances: readonly [TestServices, TestServices];
let management: readonly [Management, Management];
let runs = 0;
const FUZZ = Number(process.env['FUZZ_RUNS'] ?? '1');

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 20 });
  instances = [await createTestServices(database), await createTestServices(database)];
  const make = (services: TestServices): Management =>
    createManagement(
      { invitationTtlHours: 1 },
      {
        ...services,
        pool: database.pool,
        clock: systemClock,
        ids: new IdSource(systemClock),
        isAlone: () => false,
      },
    );
  management = [make(instances[0]), make(instances[1])];
});
afterAll(async () => {
  for (const services of instances) await services.close();
  await database.drop();
});

const USERS = ['ann', 'bob', 'cy', 'group:1#member@'.replaceAll('#', '/')] as const;
const KINDS = [
  'listWorkspaces',
  'createWorkspace',
  'addMember',
  'updateRole',
  'removeMember',
  'suspend',
  'reinstate',
  'transfer',
  'deleteWorkspace',
  'invite',
  'accept',
  'revokeInvitation',
  'createGroup',
  'deleteGroup',
  'addGroupMember',
  'removeGroupMember',
  'setState',
  'setLimit',
  'assign',
  'revoke',
] as const;
/** More often than the others: what they change is what is compared. */
const OFTEN = ['addGroupMember', 'removeGroupMember', 'setState', 'assign', 'setState'] as const;

const anOperation = fc.record({
  kind: fc.constantFrom(...KINDS, ...OFTEN, ...OFTEN),
  // Mostly one: who made most things may do most.
  actor: fc.constantFrom(0, 0, 0, 0, 1, 2, 3),
  target: fc.nat(USERS.length - 1),
  place: fc.nat(4),
  other: fc.nat(4),
  number: fc.nat(5),
  tenant: fc.constantFrom('', '', '', '', '', 't'),
});
type Operation = typeof anOperation extends fc.Arbitrary<infer T> ? T : never;

/** One project with what a run has made so far. */
class Run {
  readonly projectId: string;
  readonly model = new GroupModel();
  readonly workspaces: string[] = [];
  readonly groups: { id: string; workspaceId: string }[] = [];
  readonly invitations: { id: string; token: string }[] = [];

  constructor(projectId: string) {
    this.projectId = projectId;
  }

  /** Whether it succeeded; it may be refused, but for no unforeseen reason. */
  async apply(operation: Operation, by: Management): Promise<boolean> {
    try {
      await this.#apply(operation, by);
      return true;
    } catch (error) {
      if (!(error instanceof AppError) || error.reason === 'INTERNAL') throw error;
      return false;
    }
  }

  async #apply(operation: Operation, by: Management): Promise<void> {
    const actingUserId = USERS[operation.actor] ?? 'ann';
    const meta = { rpc: operation.kind, actingUserId, requestId: 'r', deadlineMs: Infinity };
    const call = { projectId: this.projectId, tenantId: operation.tenant, actingUserId, meta };
    if (KINDS.indexOf(operation.kind) < KINDS.indexOf('createGroup')) {
      await this.#applyToWorkspace(operation, by, call);
    } else if (KINDS.indexOf(operation.kind) < KINDS.indexOf('setLimit')) {
      await this.#applyToGroup(operation, by, call);
    } else {
      const plan = { ...call, sku: `sku-${operation.place % 2}` };
      const userId = USERS[operation.target] ?? 'ann';
      const { number } = operation;
      const limit = number > 3 ? undefined : number;
      if (operation.kind === 'setLimit') await by.seats.setLimit({ ...plan, limit }, meta);
      else if (operation.kind === 'assign') await by.seats.assign({ ...plan, userId }, meta);
      else await by.seats.revoke({ ...plan, userId }, meta);
    }
  }

  async #applyToWorkspace(operation: Operation, by: Management, call: Call): Promise<void> {
    const userId = USERS[operation.target] ?? 'ann';
    const workspaceId = this.workspaces[operation.place % (this.workspaces.length || 1)] ?? 'none';
    const role = (operation.number % 4) + 1;
    const member = { ...call, workspaceId, userId };
    const invitation = this.invitations[operation.other % (this.invitations.length || 1)];
    switch (operation.kind) {
      case 'listWorkspaces':
        for await (const page of await by.workspaces.list(call)) {
          for (const { id } of page) if (!this.workspaces.includes(id)) this.workspaces.push(id);
        }
        break;
      case 'createWorkspace': {
        const made = await by.workspaces.create({ ...call, displayName: 'W', slug: '' });
        this.workspaces.push(made.id);
        break;
      }
      case 'addMember':
        await by.members.add({ ...member, role });
        break;
      case 'updateRole':
        await by.members.updateRole({ ...member, role });
        break;
      case 'removeMember':
        await by.members.remove(member);
        break;
      case 'suspend':
        await by.members.suspend(member);
        break;
      case 'reinstate':
        await by.members.reinstate(member);
        break;
      case 'transfer':
        await by.workspaces.transferOwnership({ ...call, workspaceId, newOwnerUserId: userId });
        break;
      case 'deleteWorkspace':
        await by.workspaces.delete({ ...call, workspaceId });
        for (const group of this.groups) {
          if (group.workspaceId === workspaceId) this.model.groupDeleted(group.id);
        }
        break;
      case 'invite': {
        const made = await by.invitations.create({ ...call, workspaceId, email: 'a@b', role });
        this.invitations.push({ id: made.id, token: made.token ?? '' });
        break;
      }
      case 'accept':
        await by.invitations.accept({ ...call, token: invitation?.token ?? 'none' });
        break;
      default:
        await by.invitations.revoke({ ...call, invitationId: invitation?.id ?? 'none' });
    }
  }

  async #applyToGroup(operation: Operation, by: Management, call: Call): Promise<void> {
    const count = this.groups.length || 1;
    const groupId = this.groups[operation.place % count]?.id ?? 'none';
    const isGroup = operation.number % 2 === 1;
    const otherId = this.groups[operation.other % count]?.id ?? 'none';
    const user = USERS[operation.target] ?? 'ann';
    const raw: RawMember = isGroup
      ? { case: 'groupId', value: otherId }
      : { case: 'userId', value: user };
    const request = { ...call, groupId, member: { member: raw } };
    const subject = isGroup ? `group:${otherId}#member` : user;
    const text = `${call.tenantId}|group:${groupId}#member@${subject}`;
    switch (operation.kind) {
      case 'createGroup': {
        const at = this.workspaces[operation.place % (this.workspaces.length || 1)];
        const workspaceId = operation.number > 2 ? (at ?? '') : '';
        const wanted = { ...call, displayName: 'G', slug: '', workspaceId };
        const { id } = await by.groups.create(wanted, call.meta);
        this.groups.push({ id, workspaceId });
        break;
      }
      case 'deleteGroup':
        await by.groups.delete(request, call.meta);
        this.model.groupDeleted(groupId);
        break;
      case 'addGroupMember':
        await by.groupMembers.add(request, call.meta);
        this.model.added(text);
        break;
      case 'removeGroupMember':
        await by.groupMembers.remove(request, call.meta);
        this.model.removed(text);
        break;
      default: {
        const state = (operation.number + operation.other) % 6;
        await by.groupMembers.setState({ ...request, state }, call.meta);
        this.model.stateSet(text);
      }
    }
  }
}

type Call = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly actingUserId: string;
  readonly meta: {
    readonly rpc: string;
    readonly actingUserId: string;
    readonly requestId: string;
    readonly deadlineMs: number;
  };
};

async function startRun(): Promise<Run> {
  const id = `run-${++runs}`;
  const project = { id, name: id, modelJson: '', dataRegion: '', maxCheckReads: 0 };
  await instances[0].projects.create(project, 'r');
  const run = new Run(id);
  const begin = { actor: 0, target: 0, place: 0, other: 0, tenant: '' } as const;
  await run.apply({ ...begin, kind: 'createWorkspace', number: 0 }, management[0]);
  for (const number of [0, 0, 5])
    await run.apply({ ...begin, kind: 'createGroup', number }, management[0]);
  return run;
}

const [first, second] = [0, 1] as const;

test(
  'M1 E1 S1: in any order, tuples are exactly those of the rows',
  { timeout: 120_000 },
  async () => {
    let succeeded = 0;
    let stored = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(anOperation, { size: 'max', maxLength: 80 }),
        async (operations) => {
          const run = await startRun();
          for (const one of operations) {
            const isDone = await run.apply(one, management[first]);
            if (!isDone) continue;
            succeeded++;
            const expected = [
              ...(await tuplesOfRows(database.pool, run.projectId)),
              ...run.model.plain,
            ].toSorted();
            const actual = await storedTuples(database.pool, run.projectId);
            stored += actual.length;
            expect(actual, one.kind).toEqual(expected);
            expect(await replayedTuples(database.pool, run.projectId)).toEqual(actual);
            expect(await enrolledMembers(database.pool, run.projectId)).toEqual(
              [...run.model.enrolled].toSorted(),
            );
            expect(await brokenRows(database.pool, run.projectId)).toEqual([]);
          }
        },
      ),
      { numRuns: byLength(8, 25) * FUZZ },
    );
    expect(succeeded).toBeGreaterThan(byLength(30, 100));
    expect(stored).toBeGreaterThan(byLength(60, 200));
  },
);

test(
  'whoever is first, on two instances: no row without its tuple, no tuple left',
  { timeout: 120_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anOperation, { size: 'max', maxLength: 80 }),
        async (operations) => {
          const run = await startRun();
          for (let at = 0; at < operations.length; at += 8) {
            await Promise.all(
              operations
                .slice(at, at + 8)
                .map((one, i) => run.apply(one, management[i % 2 === 0 ? first : second])),
            );
            const derived = new Set(await tuplesOfRows(database.pool, run.projectId));
            const actual = new Set(await storedTuples(database.pool, run.projectId));
            const enrolled = new Set(await enrolledMembers(database.pool, run.projectId));
            expect([...derived].filter((text) => !actual.has(text))).toEqual([]);
            // What no row asks for is a plain membership.
            const rest = [...actual].filter((text) => !derived.has(text));
            expect(rest.filter((text) => !text.includes('|group:') || enrolled.has(text))).toEqual(
              [],
            );
            expect(await brokenRows(database.pool, run.projectId)).toEqual([]);
          }
        },
      ),
      { numRuns: byLength(4, 10) * FUZZ },
    );
  },
);
