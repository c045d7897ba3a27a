import { ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { newProject, sharedInstance } from '../support/shared-instance.ts';
import { exported, linesOf, postLines, tuplesOver, type Wire } from './support.ts';

/* How far a DeleteTuples goes is what the request says, not what a filter leaves out. */

const instance = await sharedInstance();

const TUPLES = ['report', 'folder'].flatMap((namespace) =>
  ['a', 'b'].flatMap((object_id) =>
    ['ann', 'bob'].map((user_id) => ({
      namespace,
      object_id,
      relation: 'reader',
      subject: { user_id },
    })),
  ),
);

const ANN = { subject: { user_id: 'ann' } };

/** A request, and the field that is named or the tuples that are taken. */
const CASES: readonly (readonly [object, string | number])[] = [
  [{ filter: { namespace: 'report' } }, 'filter.object_id'],
  [{ filter: { namespace: 'report', object_id: '' } }, 'filter.object_id'],
  [{ filter: { namespace: 'report', relation: 'reader' } }, 'filter.object_id'],
  [{ filter: { namespace: 'report', object_id: '', ...ANN } }, 'filter.object_id'],
  [{ filter: { namespace: 'report' }, whole_namespace: false }, 'filter.object_id'],
  [{ filter: { namespace: 'report' }, whole_tenant: true }, 'whole_tenant'],
  [{ filter: { namespace: 'report' }, whole_namespace: true, whole_tenant: true }, 'whole_tenant'],
  [{ filter: { namespace: 'report', object_id: 'a' }, whole_namespace: true }, 'whole_namespace'],
  [{ filter: { namespace: 'report', object_id: 'a' }, whole_tenant: true }, 'whole_tenant'],
  [{}, 'filter.namespace'],
  [{ filter: {} }, 'filter.namespace'],
  [{ filter: { namespace: '', object_id: '' } }, 'filter.namespace'],
  [{ filter: ANN }, 'filter.namespace'],
  [{ filter: { relation: 'reader' }, whole_namespace: true }, 'filter.namespace'],
  [{ whole_namespace: true, whole_tenant: true }, 'filter.namespace'],
  [{ filter: { object_id: 'a' }, whole_tenant: true }, 'filter.object_id'],
  [{ filter: { namespace: 'report', object_id: 'a' } }, 2],
  [{ filter: { namespace: 'report', object_id: 'a', ...ANN } }, 1],
  [{ filter: { namespace: 'report' }, whole_namespace: true }, 4],
  [{ filter: { namespace: 'report', ...ANN }, whole_namespace: true }, 2],
  [{ filter: ANN, whole_tenant: true }, 4],
  [{ filter: { relation: 'reader' }, whole_tenant: true }, 8],
  [{ filter: {}, whole_tenant: true }, 8],
  [{ whole_tenant: true }, 8],
];

test.each(CASES)('JSON: %j answers %s', async (request, answer) => {
  const { projectId, left } = await stored();
  for (const dry_run of [true, false]) {
    const response = await fetch(`${instance.baseUrl}/gatehouse.v1.TupleService/DeleteTuples`, {
      method: 'POST',
      headers: { authorization: `Bearer ${instance.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ project_id: projectId, dry_run, ...request }),
    });
    const body = (await response.json()) as Record<string, string>;
    if (typeof answer === 'string') {
      expect([response.status, body['code']]).toEqual([400, 'invalid_argument']);
      expect(body['message']).toContain(`${answer}: `);
    } else {
      expect([response.status, body['count']]).toEqual([200, String(answer)]);
    }
    expect(await left()).toBe(8 - (typeof answer === 'number' && !dry_run ? answer : 0));
  }
});

test.each<Wire>(['connect', 'grpc'])('%s: absent and empty are one, and named', async (wire) => {
  const client = tuplesOver(instance, wire);
  const { projectId, left } = await stored();
  const fieldOf = (request: Parameters<typeof client.deleteTuples>[0]): Promise<string> =>
    client.deleteTuples({ projectId, ...request }).then(
      ({ count }) => String(count),
      (error: unknown) => ConnectError.from(error).rawMessage,
    );
  for (const dryRun of [true, false]) {
    for (const filter of [{ namespace: 'report' }, { namespace: 'report', objectId: '' }]) {
      expect(await fieldOf({ filter, dryRun })).toBe(
        'filter.object_id: is empty: every object of "report" needs whole_namespace',
      );
    }
    for (const filter of [undefined, {}, { namespace: '' }]) {
      expect(await fieldOf({ ...(filter && { filter }), dryRun })).toBe(
        'filter.namespace: is empty: every namespace needs whole_tenant',
      );
    }
    const filter = { namespace: 'folder', objectId: 'b' };
    expect(await fieldOf({ filter, wholeNamespace: true, dryRun })).toBe(
      'whole_namespace: excludes filter.object_id',
    );
  }
  expect(await left()).toBe(8);
  const folders = { filter: { namespace: 'folder' }, wholeNamespace: true };
  expect(await fieldOf({ ...folders, dryRun: true })).toBe('4');
  expect(await left()).toBe(8);
  expect(await fieldOf(folders)).toBe('4');
  expect(await left()).toBe(4);
  expect(await fieldOf({ wholeTenant: true })).toBe('4');
  expect(await left()).toBe(0);
});

/** A project with the tuples, and how many of them are left. */
async function stored(): Promise<{ projectId: string; left: () => Promise<number> }> {
  const projectId = await newProject(instance);
  const { status } = await postLines(instance, `?project_id=${projectId}`, linesOf(TUPLES));
  expect(status).toBe(200);
  const left = async (): Promise<number> =>
    (await exported(instance, `?project_id=${projectId}`)).length;
  return { projectId, left };
}
