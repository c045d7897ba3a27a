import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { sharedInstance } from '../support/shared-instance.ts';
import { linesOf, plainTuples } from '../tuples/support.ts';
import { plain, tupleCommands } from './tuple-commands-service.ts';

/* The commands of tuples, as people start them, against a service. */

const { gatehouse, file } = await tupleCommands();
const unwatched = await sharedInstance();

const STORED = `doc:plan#editor@group:eng#member
doc:plan#viewer@user:ann
doc:plan#viewer@user:bob until 2032-01-01T00:00:00Z if scope_in {"scopes":["a"]}
doc:plan#viewer@user:* until 2031-01-01T00:00:00Z
`;

test('what is written is read, exported, deleted, imported and read again', async () => {
  const of = ['-t', 'round'];
  const written = await gatehouse([
    'write',
    ...of,
    'doc:plan#viewer@user:ann',
    'doc:plan#editor@group:eng#member',
  ]);
  expect(plain(written)).toEqual({
    code: 0,
    out: 'wrote 2 tuples; consistency token TOKEN\n',
    err: '',
  });
  const lines = [
    'doc:plan#viewer@user:*',
    '',
    '{"tuple":{"namespace":"doc","object_id":"plan","relation":"viewer","subject":{"user_id":"bob"},"expires_at":"2032-01-01T00:00:00Z","condition_name":"scope_in","condition_params":{"scopes":["a"]}}}',
  ].join('\n');
  const key = ['--idempotency-key', 'k', '--expires-at', '2031-01-01T00:00:00Z', '--json'];
  for (const replayed of [false, true]) {
    const answer = await gatehouse(['write', ...of, '--file', '-', ...key], { input: lines });
    expect([answer.code, answer.err]).toEqual([0, '']);
    expect(JSON.parse(answer.out)).toEqual({
      consistency_token: expect.any(String) as string,
      replayed,
    });
  }
  expect(await gatehouse(['read', ...of])).toEqual({ code: 0, out: STORED, err: '' });
  expect(await gatehouse(['read', ...of, '--subject', 'user:ann', '--limit', '1'])).toEqual({
    code: 0,
    out: 'doc:plan#viewer@user:ann\n',
    err: '',
  });
  const two = await gatehouse(['read', ...of, '--limit', '2', '--json']);
  expect(two.err).toBe('there are more than 2 tuples: --limit shows more\n');
  expect(JSON.parse(two.out)).toMatchObject([{ relation: 'editor' }, { relation: 'viewer' }]);
  const saved = await gatehouse(['export', ...of, '--out', 'round.ndjson', '--written-at']);
  expect(plain(saved)).toEqual({
    code: 0,
    out: '',
    err: 'round.ndjson: exported 4 tuples, N/s; consistency token TOKEN\n',
  });
  const filter = ['delete', ...of, '--namespace', 'doc', '--object', 'plan'];
  expect(plain(await gatehouse([...filter, '--dry-run'])).out).toBe(
    'would delete 4 tuples; consistency token TOKEN\n',
  );
  expect(plain(await gatehouse([...filter, '--count-max', '3']))).toEqual({
    code: 2,
    out: '',
    err: 'error: count_max: 4 tuples would be deleted (PRECONDITION_FAILED)\n',
  });
  expect(plain(await gatehouse(filter)).out).toBe('deleted 4 tuples; consistency token TOKEN\n');
  const nothing = await gatehouse(['read', ...of, '--json']);
  expect(nothing).toEqual({ code: 0, out: '[]\n', err: 'no tuples\n' });
  expect(plain(await gatehouse(['import', ...of, 'round.ndjson'])).out).toBe(
    '4 tuples received, 4 written, 0 unchanged; consistency token TOKEN\n',
  );
  expect((await gatehouse(['read', ...of])).out).toBe(STORED);
});

test('a refused write names the word or the line', async () => {
  const of = ['-t', 'refused'];
  await gatehouse(['write', ...of, 'doc:a#viewer@user:ann']);
  const again = ['write', ...of, 'doc:b#viewer@user:ann', 'doc:a#viewer@user:ann'];
  expect(await gatehouse([...again, '--mode', 'absent'])).toMatchObject({
    code: 2,
    err: 'error: doc:a#viewer@user:ann is stored already (TUPLE_EXISTS)\n',
  });
  const missing = ['delete', ...of, 'doc:a#viewer@user:ann', 'doc:c#viewer@user:ann'];
  expect(await gatehouse([...missing, '--mode', 'present'])).toMatchObject({
    code: 2,
    err: 'error: doc:c#viewer@user:ann is not stored (TUPLE_MISSING)\n',
  });
  expect(plain(await gatehouse(missing)).out).toBe(
    'deleted 2 tuples where stored; consistency token TOKEN\n',
  );
  const input = `doc:a#viewer@user:ann\n\n${JSON.stringify({ namespace: 'Doc', object_id: 'b', relation: 'viewer', subject: { user_id: 'u' } })}`;
  const line = await gatehouse(['write', ...of, '--file', '-'], { input });
  expect(line.code).toBe(2);
  expect(line.err).toMatch(/^error: standard input:3: namespace: .* \(FIELD_INVALID\)\n$/);
  const many = plainTuples(1_001);
  expect(await gatehouse(['write', ...of, '--file', '-'], { input: linesOf(many) })).toEqual({
    code: 2,
    out: '',
    err: 'error: updates: at most 1000 in one request (BATCH_TOO_LARGE); gatehouse import takes any number of tuples\n',
  });
});

const { port: closedPort } = await new Promise<{ port: number }>((done) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const address = server.address() as { port: number };
    server.close(() => done(address));
  });
});

describe('what is wrong is said', () => {
  test.each([
    ['write', '', 'which tuples? Name them, or give --file'],
    ['write doc:a', '', 'doc:a: must read namespace:object#relation@subject'],
    [
      'write doc:a#viewer@user:a --file x',
      '',
      '--file: excludes doc:a#viewer@user:a on the command line',
    ],
    [
      'write --file -',
      'doc:a#viewer@user:a\n{"namespace":"doc"}',
      'standard input:2: object_id must be a text',
    ],
    ['write --file -', '\n', 'standard input: has no tuple'],
    [
      'write doc:a#viewer@user:a --mode nope',
      '',
      '--mode: nope must be absent or absent-or-identical',
    ],
    [
      'write doc:a#viewer@user:a --expires-at 2h',
      '',
      '--expires-at: 2h must be a time of RFC 3339, as 2031-01-01T00:00:00Z',
    ],
    ['write doc:a#viewer@user:a --params {}', '', '--params: needs --condition'],
    [
      'delete --namespace doc',
      '',
      'without --object every object is meant: say so by --whole-namespace',
    ],
    [
      'delete --subject user:a',
      '',
      'without --namespace every namespace is meant: say so by --whole-tenant',
    ],
    ['delete --whole-tenant --namespace doc', '', '--whole-tenant: excludes --namespace'],
    [
      'delete doc:a#viewer@user:a --dry-run',
      '',
      '--dry-run: is of a delete by filter, which excludes doc:a#viewer@user:a',
    ],
    ['delete --namespace doc --object= --whole-namespace', '', '--object: is empty'],
    [
      'read --object doc:plan',
      '',
      '--object: needs --namespace, and is the id alone: --namespace doc --object plan',
    ],
    [
      'read --subject ann',
      '',
      '--subject: ann: the subject must read user:…, namespace:object#relation or namespace:object',
    ],
    ['export --resume', '', '--resume: needs --out'],
    ['export --all-tenants -t a', '', '--all-tenants: excludes --tenant'],
    ['import', '', 'which file? Name one; - is the input'],
    ['watch --heartbeat 61', '', '--heartbeat: must be a whole number from 1 to 60'],
  ])('%s', async (words, input, message) => {
    const { code, out, err } = await gatehouse(words.split(' '), { input });
    expect([code, out, err.split('\n')[0]]).toEqual([2, '', `error: ${message}`]);
  });

  test('a file that is none, an import that is wrong, a watch that is off', async () => {
    const resume = await gatehouse(['export', '--out', 'none', '--resume']);
    expect(resume.code).toBe(2);
    expect(resume.err).toMatch(/^error: none\.part: ENOENT/);
    expect((await gatehouse(['import', 'none'])).err).toMatch(/^error: none: ENOENT/);
    const bad = file('bad.ndjson', `nope\n${linesOf(plainTuples(20_000))}`);
    expect(await gatehouse(['import', bad])).toEqual({
      code: 2,
      out: '',
      err: 'error: line 1: is not JSON (FIELD_INVALID)\n',
    });
    const { baseUrl: url, projectId } = unwatched;
    expect(await gatehouse(['watch', '-p', projectId], { url, token: unwatched.token })).toEqual({
      code: 2,
      out: '',
      err: 'error: watching is off: set GATEWAY_WATCH_STREAMS (WATCH_OFF)\n',
    });
  });

  test.each(['write doc:a#b@user:a', 'read', 'export', 'import empty', 'watch'])(
    '%s: no service is 4',
    async (words) => {
      file('empty', '');
      const url = `http://127.0.0.1:${closedPort}`;
      const { code, out, err } = await gatehouse(words.split(' '), { url });
      expect([code, out]).toEqual([4, '']);
      expect(err).toContain(`connect ECONNREFUSED 127.0.0.1:${closedPort}`);
    },
  );
});
