/* An export is imported whole, or not at all: wherever it was cut or altered, the import says so and writes nothing. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { sharedInstance } from '../support/shared-instance.ts';
import { exported, linesOf, plainTuples, postLines, setOf } from './support.ts';

const instance = await sharedInstance();

let tenants = 0;
const newTenant = (): string => `whole-${String(++tenants)}`;

const scopeOf = (tenantId: string): string =>
  `?project_id=${instance.projectId}&tenant_id=${tenantId}`;

async function exportText(query: string): Promise<string> {
  const response = await fetch(`${instance.baseUrl}/v1/tuples${query}`, {
    headers: { authorization: `Bearer ${instance.token}` },
  });
  expect(response.status).toBe(200);
  return await response.text();
}

/** The export of a new tenant with so many tuples. */
async function exportOf(count: number): Promise<{ tenantId: string; text: string }> {
  const tenantId = newTenant();
  await postLines(instance, scopeOf(tenantId), linesOf(plainTuples(count)));
  return { tenantId, text: await exportText(scopeOf(tenantId)) };
}

async function refusalOf(text: string): Promise<string> {
  const tenantId = newTenant();
  const { status, body } = await postLines(instance, scopeOf(tenantId), text);
  expect([status, body['code']], text.slice(-200)).toEqual([400, 'invalid_argument']);
  expect(await exported(instance, scopeOf(tenantId))).toEqual([]);
  const [detail] = body['details'] as [{ debug: { reason: string } }];
  return `${detail.debug.reason}: ${String(body['message'])}`;
}

test('the last line has the count of tuples and the SHA-256 of all bytes before it', async () => {
  for (const count of [0, 1, 1_500]) {
    const { text } = await exportOf(count);
    const lines = text.split('\n').slice(0, -1);
    expect(JSON.parse(lines[0] ?? '')).toEqual({ begin: true, cursor: '' });
    const last = lines.at(-1) ?? '';
    const before = text.slice(0, -last.length - 1);
    expect(JSON.parse(last)).toMatchObject({
      end: true,
      count,
      sha256: createHash('sha256').update(before).digest('hex'),
    });
  }
});

test('a whole one is imported without a warning, with and without its last newline', async () => {
  const { text } = await exportOf(1_500);
  for (const sent of [text, text.trimEnd()]) {
    const tenantId = newTenant();
    const { body } = await postLines(instance, scopeOf(tenantId), sent);
    expect(body).toMatchObject({ received: '1500', written: '1500', warnings: [] });
    expect(setOf(await exported(instance, scopeOf(tenantId)))).toEqual(setOf(plainTuples(1_500)));
  }
});

test('one that was cut anywhere is refused, and says where it goes on', async () => {
  const { text } = await exportOf(1_500);
  const lines = text.split('\n').slice(0, -1);
  const firstMark = lines.findIndex((line) => line.includes('revision_changed'));
  const cursor = (JSON.parse(lines[firstMark] ?? '') as { cursor: string }).cursor;
  // Behind whole lines, and in the middle of one: of a tuple, and of the last.
  const cuts = [1, 2, firstMark, firstMark + 1, firstMark + 5, lines.length - 1].map(
    (count) => `${lines.slice(0, count).join('\n')}\n`,
  );
  cuts.push(text.slice(0, text.indexOf('"tuple"', 5_000) + 30), text.slice(0, -20));
  for (const cut of cuts) {
    const refusal = await refusalOf(cut);
    expect(refusal).toMatch(
      /^EXPORT_CUT: the export was cut: .*; nothing was written\. Export again/,
    );
    const hasCursor = cut.split('\n').length > firstMark + 1;
    const isLater = cut.length > text.length / 2;
    if (hasCursor && !isLater)
      expect(refusal).toContain(
        `up to ${firstMark + 1} and append the export with cursor=${cursor}`,
      );
    if (!hasCursor) expect(refusal).not.toContain('cursor=');
  }
});

test('what it advises leads to the whole, and another continuation is refused', async () => {
  const { tenantId, text } = await exportOf(1_500);
  const lines = text.split('\n');
  const mark = lines.findIndex((line) => line.includes('revision_changed'));
  const kept = `${lines.slice(0, mark + 1).join('\n')}\n`;
  const { cursor } = JSON.parse(lines[mark] ?? '') as { cursor: string };
  const rest = await exportText(`${scopeOf(tenantId)}&cursor=${encodeURIComponent(cursor)}`);
  const restored = newTenant();
  const { body } = await postLines(instance, scopeOf(restored), kept + rest);
  expect(body).toMatchObject({ received: '1500', warnings: [] });
  expect(setOf(await exported(instance, scopeOf(restored)))).toEqual(setOf(plainTuples(1_500)));
  // What is before the join is vouched for by the line of the cursor.
  const holed = lines
    .slice(0, mark + 1)
    .toSpliced(4, 3)
    .join('\n');
  expect(await refusalOf(`${holed}\n${rest}`)).toMatch(
    /^EXPORT_ALTERED: line \d+: says \d+ tuples/,
  );
  // From the beginning again, or from another place.
  expect(await refusalOf(kept + text)).toMatch(/^EXPORT_CUT: .* in line \d+ another export begins/);
  // Two whole ones may follow each other.
  const both = await postLines(instance, scopeOf(newTenant()), text + text);
  expect(both.body).toMatchObject({ received: '3000', written: '1500', warnings: [] });
});

test('one that lost or gained a line, or a letter, is refused', async () => {
  const { text } = await exportOf(50);
  const lines = text.split('\n');
  const without = lines.toSpliced(7, 1).join('\n');
  const twice = lines.toSpliced(7, 0, lines[7] ?? '').join('\n');
  const swapped = lines.toSpliced(7, 2, lines[8] ?? '', lines[7] ?? '').join('\n');
  expect(await refusalOf(without)).toMatch(/^EXPORT_ALTERED: line 51: says 50 tuples, and 49 came/);
  expect(await refusalOf(twice)).toMatch(/^EXPORT_ALTERED: line 53: says 50 tuples, and 51 came/);
  expect(await refusalOf(swapped)).toMatch(/says 50 tuples, and other bytes of them came/);
});

test('one without its beginning is refused, and hostile marks are', async () => {
  const { text } = await exportOf(50);
  expect(await refusalOf(text.split('\n').slice(1).join('\n'))).toMatch(
    /^EXPORT_CUT: the export was cut: its first line is missing/,
  );
  const begin = '{"begin":true,"cursor":""}';
  for (const end of [
    '{"toString":1}',
    '[[]]',
    '"1"',
    'null',
    '1e999',
    `"${'9'.repeat(100_000)}"`,
  ]) {
    const refusal = await refusalOf(`${begin}\n{"end":true,"count":${end},"sha256":"x"}\n`);
    expect(refusal).toMatch(/^EXPORT_ALTERED: line 2: says /);
    expect(refusal.length).toBeLessThan(300);
  }
  const long = await refusalOf(`${begin}\n{"cursor":"${'c'.repeat(400_000)}"}\n${begin}\n`);
  expect(long.length).toBeLessThan(300);
});

test('one of a release before is imported with a warning, other lines without', async () => {
  const { text } = await exportOf(20);
  const lines = text
    .split('\n')
    .slice(1, -2)
    .map((line) => line.replace(/,"count".*/, '}'));
  const older = [...lines, '{"end":true,"cursor":"c","consistency_token":"t"}', ''].join('\n');
  const warned = await postLines(instance, scopeOf(newTenant()), older);
  expect(warned.body).toMatchObject({
    received: '20',
    warnings: [expect.stringMatching(/whether|all of it/)],
  });
  const bare = await postLines(instance, scopeOf(newTenant()), linesOf(plainTuples(20)));
  expect(bare.body).toMatchObject({ received: '20', warnings: [] });
});

test('an id that reads like a mark is none', async () => {
  const tenantId = newTenant();
  const tuple = { ...plainTuples(1)[0], object_id: '"begin":true "end":true' };
  const sent = `${JSON.stringify(tuple)}\n`;
  expect((await postLines(instance, scopeOf(tenantId), sent)).status).toBe(200);
  const text = await exportText(scopeOf(tenantId));
  const { body } = await postLines(instance, scopeOf(newTenant()), text);
  expect(body).toMatchObject({ received: '1', warnings: [] });
});

test('tuples of seats are left out, counted and named', async () => {
  const seat = (user: string): string =>
    `{"tuple":{"namespace":"seat","object_id":"pro","relation":"holder","subject":{"user_id":"${user}"}}}\n`;
  const tuples = linesOf(plainTuples(3));
  const tenantId = newTenant();
  for (const isDry of [true, false]) {
    const { body } = await postLines(
      instance,
      `${scopeOf(tenantId)}&dry_run=${isDry}`,
      tuples + ['ann', 'bo', 'cy', 'di'].map(seat).join(''),
    );
    expect(body).toMatchObject({
      received: '7',
      written: isDry ? '0' : '3',
      seats_left_out: '4',
      warnings: [
        '4 tuples of the seat namespace were left out, AssignSeat writes them: seat:pro#holder@user:ann, seat:pro#holder@user:bo, seat:pro#holder@user:cy, …',
        expect.stringContaining('all of it'),
      ],
    });
  }
  expect(await exported(instance, scopeOf(tenantId))).toHaveLength(3);
  // An error behind it still names its place in the stream.
  const bad = await postLines(instance, scopeOf(tenantId), `${seat('ann')}{"namespace":"Not"}\n`);
  expect(String(bad.body['message'])).toMatch(/^tuples\[1\]\.namespace/);
});
