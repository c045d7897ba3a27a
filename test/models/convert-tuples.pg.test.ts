import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { scriptInProcess } from '../support/script-in-process.ts';
import { call } from '../support/service.ts';
import { newProject, sharedInstance } from '../support/shared-instance.ts';
import { postLines } from '../tuples/support.ts';

/* Tuples of OpenFGA and SpiceDB: converted by the command, imported into an instance, and asked for. */
const instance = await sharedInstance();
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-tuples-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const noFolder = (text: string): string => text.replaceAll(`${folder}/`, '');

/** The command as people run it. */
function spawned(options: readonly string[], ...args: readonly string[]) {
  const words = [...options, 'scripts/gatehouse.mjs', 'model', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  return { status, stdout, stderr: noFolder(stderr) };
}

/** The same in this process, in a fiftieth of the time. */
async function model(subcommand: 'convert' | 'import', ...args: readonly string[]) {
  const { code, out, err } = await scriptInProcess('src/gatehouse.ts', [
    'model',
    subcommand,
    ...args,
  ]);
  return { status: code, stdout: out, stderr: noFolder(err) };
}

const FGA = `model
  schema 1.1
type user
type Team
  relations
    define member: [user, Team#member]
type document
  relations
    define viewer: [user, user:*, Team#member, user with small]
    define banned: [user]
    define can_view: viewer but not banned
condition small(size: int, limit: int) {
  size < limit
}
`;
const PLAIN = { user: 'user:ann', relation: 'viewer', object: 'document:a' };
const TEAM = { user: 'Team:eng#member', relation: 'viewer', object: 'document:b' };
const MEMBER = { user: 'user:bob', relation: 'member', object: 'Team:eng' };
const SMALL = {
  user: 'user:cid',
  relation: 'viewer',
  object: 'document:c',
  condition: { name: 'small', context: { limit: 5 } },
};
const ALL = { user: 'user:*', relation: 'viewer', object: 'document:all' };
const BANNED = { user: 'user:bob', relation: 'banned', object: 'document:all' };
const TUPLES: readonly {
  readonly user: string;
  readonly relation: string;
  readonly object: string;
  readonly condition?: { readonly name: string; readonly context: object };
}[] = [PLAIN, TEAM, MEMBER, SMALL, ALL, BANNED];
const keyed = TUPLES.map((key) => ({ key, timestamp: '2026-01-01T00:00:00Z' }));

/** SMALL with a context whose text stays as it is. */
const conditioned = (context: string): string =>
  JSON.stringify(SMALL).replace('{"limit":5}', () => context);

function csvOf(): string {
  const cell = (text: string): string =>
    /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const head =
    'user_type,user_id,user_relation,relation,object_type,object_id,condition_name,condition_context';
  const rows = TUPLES.map(({ user, relation, object, condition }) => {
    const [userType = '', id = '', userRelation = ''] = user.split(/[:#]/);
    const [objectType = '', objectId = ''] = object.split(':');
    const context = condition === undefined ? '' : JSON.stringify(condition.context);
    const fields = [
      userType,
      id,
      userRelation,
      relation,
      objectType,
      objectId,
      condition?.name ?? '',
      context,
    ];
    return fields.map(cell).join(',');
  });
  return `\uFEFF${head}\r\n${rows.join('\r\n')}\r\n`;
}

const yamlOf = (tuples: readonly object[], indent: string): string =>
  tuples.map((one) => `${indent}- ${JSON.stringify(one)}\n`).join('');
const block = (text: string): string => text.replaceAll(/^/gm, '  ');
const fga = file('model.fga', FGA);
const FORMS: Readonly<Record<string, () => readonly string[]>> = {
  list: () => [file('list.json', JSON.stringify(TUPLES, null, 2)), '--to', 'tuples'],
  page: () => [
    file('page.json', JSON.stringify({ tuples: keyed, continuation_token: '' })),
    '--to',
    'tuples',
  ],
  lines: () => [file('lines.jsonl', TUPLES.map((one) => JSON.stringify(one)).join('\n'))],
  csv: () => [file('tuples.csv', csvOf())],
  yaml: () => [file('tuples.yaml', yamlOf(TUPLES, ''))],
  store: () => {
    file('more.json', JSON.stringify(TUPLES.slice(3)));
    const text = `model: |\n${block(FGA)}\ntuple_file: more.json\ntuples:\n${yamlOf(TUPLES.slice(0, 3), '  ')}`;
    return [file('store.fga.yaml', text)];
  },
};

async function importedAnswers(
  projectId: string,
  tenant: string,
  lines: string,
  questions: readonly (readonly [string, string, object?])[],
  relation: string,
) {
  const scope = { project_id: projectId, tenant_id: tenant };
  const done = await postLines(instance, `?project_id=${projectId}&tenant_id=${tenant}`, lines);
  expect(done.status, JSON.stringify(done.body)).toBe(200);
  const answers = questions.map(async ([user, object, context]) => {
    const [namespace = '', object_id = ''] = object.split(':');
    const asked = { ...scope, namespace, object_id, relation, subject_user_id: user };
    const answer = await call(instance, 'AuthzService/Check', {
      ...asked,
      ...(context && { context }),
    });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body['allowed'];
  });
  return await Promise.all(answers);
}

describe('OpenFGA', () => {
  test('every form comes to the same tuples, which answer as they do there', async () => {
    const gate = await model('import', fga);
    expect(gate.status, gate.stderr).toBe(0);
    const json = await model('convert', file('model.gate', gate.stdout), '--to', 'json');
    const projectId = await newProject(instance, { model_json: json.stdout });
    for (const [name, args] of Object.entries(FORMS)) {
      const known = name === 'store' ? [] : ['--model', fga];
      const converted = await model('convert', ...args(), ...known);
      expect(converted.status, `${name}: ${converted.stderr}`).toBe(0);
      expect(converted.stderr).toContain(`${TUPLES.length} tuples written\n`);
      const allowed = await importedAnswers(
        projectId,
        name,
        converted.stdout,
        [
          ['ann', 'document:a'],
          ['bob', 'document:b'],
          ['ann', 'document:b'],
          ['cid', 'document:c', { size: 4 }],
          ['cid', 'document:c', { size: 6 }],
          ['dan', 'document:all'],
          ['bob', 'document:all'],
        ],
        'can_view',
      );
      expect(allowed, name).toEqual([true, true, false, true, false, true, false]);
    }
  }, 120_000);

  test.each([
    [
      'a.jsonl',
      `${JSON.stringify(PLAIN)}\n{"user":"user:x","relation":"viewer"}\n`,
      'a.jsonl:2: the tuple.object: must be a string',
    ],
    [
      'b.jsonl',
      JSON.stringify({ ...PLAIN, expires: 'soon' }),
      'b.jsonl:1: expires: is not known here',
    ],
    [
      'c.jsonl',
      '{"user":"user:a","user":"user:b","relation":"r","object":"d:1"}',
      'c.jsonl:1: $: duplicate key "user"',
    ],
    ['d.jsonl', `[${JSON.stringify(PLAIN)}`, 'line 1: the text ends within a list or an object'],
    [
      'e.jsonl',
      `[${JSON.stringify(PLAIN)}${JSON.stringify(PLAIN)}]`,
      'line 1: "{" stands where a tuple is expected',
    ],
    [
      'f.jsonl',
      JSON.stringify({ tuples: [PLAIN], continuation_token: 'x' }),
      'continuation_token: says that there are more tuples',
    ],
    ['g.csv', 'user_type,user_id,relation,object_type\n', 'the header: has no column object_id'],
    [
      'h.csv',
      'user_type,user_id,relation,object_type,object_id,colour\n',
      'the column "colour" is not known',
    ],
    [
      'i.csv',
      'user_type,user_id,relation,object_type,object_id\nuser,a,viewer,document,1\nuser,,viewer,document,1\n',
      'i.csv:3: user_id: is required',
    ],
    [
      'j.yaml',
      `${yamlOf([PLAIN], '')}- user: user:a\n  object: document:x\n`,
      'j.yaml:2: the tuple.relation: must be a string',
    ],
    [
      'k.jsonl',
      JSON.stringify({ ...PLAIN, object: 'Doc:1' }),
      'k.jsonl:1: object: the type: "Doc" is no name here: --model',
    ],
    ['l.jsonl', JSON.stringify({ ...PLAIN, user: 'team:*#member' }), 'l.jsonl:1: user: '],
    [
      'm.txt',
      'doc:1#viewer@user:a\ndoc:1#viewer\n',
      'm.txt:2: the relationship: "doc:1#viewer" is no relationship',
    ],
    [
      'n.txt',
      'doc:1#viewer@user:a[expiration:soon]\n',
      'n.txt:1: expiration: "soon" is no instant',
    ],
    // 2^53 + 1, which a number would make 2^53 of.
    [
      'p.jsonl',
      `${JSON.stringify(PLAIN)}\n${conditioned('{"a":[1,{"limit":9007199254740993}]}')}`,
      'p.jsonl:2: the tuple.condition.context.a[1].limit: 9007199254740993 is beyond 2^53',
    ],
    [
      'q.yaml',
      `- ${JSON.stringify(PLAIN)}\n- ${conditioned('{"limit":-9007199254740993}')}\n`,
      'q.yaml:2: the tuple.condition.context.limit: -9007199254740993 is beyond 2^53',
    ],
    [
      'r.csv',
      'user_type,user_id,relation,object_type,object_id,condition_name,condition_context\nuser,a,viewer,document,1,small,"{""limit"":12345678901234567890}"\n',
      'r.csv:2: condition_context.limit: 12345678901234567890 is beyond 2^53',
    ],
    [
      's.txt',
      'doc:1#viewer@user:a\ndoc:1#viewer@user:b[small:{"limit":9007199254740992.0}]\n',
      's.txt:2: the relationship, context.limit: 9007199254740992 is beyond 2^53',
    ],
    [
      'o.jsonl',
      JSON.stringify({ ...PLAIN, object: 'seat:1' }),
      'o.jsonl:1: object: the type seat is called otherwise here',
    ],
  ])(
    '%s is refused with its line and field, and nothing is left behind',
    async (name, text, problem) => {
      const out = join(folder, `${name}.out`);
      const refused = await model('convert', file(name, text), '--out', out);
      expect(refused.stderr).toContain(problem);
      expect(refused.status).toBe(1);
      expect([existsSync(out), existsSync(`${out}.part`)]).toEqual([false, false]);
    },
  );

  test('--skip leaves out what cannot be carried over, says what, and counts it', async () => {
    const bad = { ...PLAIN, user: 'team:*#member' };
    const text = [PLAIN, bad, MEMBER, PLAIN].map((one) => JSON.stringify(one)).join('\n');
    const out = join(folder, 'skipped.out');
    const { status, stderr } = await model(
      'convert',
      file('skip.jsonl', text),
      '--skip',
      '--out',
      out,
    );
    expect(status).toBe(0);
    expect(stderr).toContain('skipped: skip.jsonl:2: user: ');
    expect(stderr).toContain('skip.jsonl: 2 tuples written, 2 skipped');
    expect(readFileSync(out, 'utf8').trim().split('\n')).toHaveLength(2);
  });

  test('the largest integers and all other numbers are carried over digit by digit', async () => {
    const context = '{"limit":9007199254740991,"low":-9007199254740991,"ratio":0.1234567890123456}';
    const forms = [
      file('exact.jsonl', conditioned(context)),
      file('exact.yaml', `- ${conditioned(context)}\n`),
      file('exact.txt', `document:c#viewer@user:cid[small:${context}]\n`),
    ];
    for (const one of forms) {
      const { status, stdout, stderr } = await model('convert', one);
      expect(status, stderr).toBe(0);
      expect(stdout).toContain(`"condition_params":${context}`);
    }
  });

  test('hostile YAML is refused within bounds', async () => {
    const anchors = Array.from({ length: 30 }, (_, i) =>
      i === 0 ? 'a0: &a0 [x]\n' : `a${i}: &a${i} [${`*a${i - 1},`.repeat(9)}]\n`,
    ).join('');
    for (const text of [anchors, '['.repeat(20_000), '{a: '.repeat(10_000)]) {
      const refused = await model('convert', file('bomb.yaml', text));
      expect([refused.status, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toContain('bomb.yaml');
      expect(refused.stderr).not.toContain('    at ');
    }
  }, 120_000);

  test('a large file is read with the memory of a small one', () => {
    const one = { ...PLAIN, user: `user:${'u'.repeat(200)}` };
    const texts = Array.from({ length: 60_000 }, (_, i) =>
      JSON.stringify({ ...one, object: `document:${i}` }),
    );
    const large = file('large.json', `[${texts.join(',\n')}]`);
    const out = join(folder, 'large.out');
    // With the heap of a small program: the text (17 MB) and its tuples do not fit.
    const heap = '--max-old-space-size=32';
    const { status, stderr } = spawned([heap], 'convert', large, '--to', 'tuples', '--out', out);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stderr).toContain(`${texts.length} tuples written`);
  }, 120_000);
});

describe('SpiceDB', () => {
  const SCHEMA = `definition user {}
caveat small(size int, limit int) { size < limit }
definition org/team { relation member: user | org/team#member }
definition doc {
  relation viewer: user | user:* | org/team#member | user with small | user with expiration
  permission view = viewer
}
use expiration
`;
  const schema = SCHEMA.replace('use expiration\n', '');
  const RELATIONSHIPS = `// who may read
doc:a#viewer@user:ann
doc:b#viewer@org/team:eng#member
org/team:eng#member@user:bob

doc:c#viewer@user:cid[small:{"limit":5}]
doc:d#viewer@user:dan[expiration:2999-01-01T00:00:00Z]
doc:e#viewer@user:eve[expiration:2001-01-01T00:00:00Z]
`;
  const QUESTIONS = [
    ['ann', 'doc:a'],
    ['bob', 'doc:b'],
    ['cid', 'doc:c', { size: 1 }],
    ['cid', 'doc:c', { size: 9 }],
    ['dan', 'doc:d'],
    ['eve', 'doc:e'],
  ] as const;

  test('text and validation files that name others come to the same answers', async () => {
    const zed = file('schema.zed', `use expiration\n${schema}`);
    const gate = await model('import', zed);
    expect(gate.status, gate.stderr).toBe(0);
    const json = await model('convert', file('spice.gate', gate.stdout), '--to', 'json');
    const text = file('rels.txt', RELATIONSHIPS);
    const validation = file(
      'v.yaml',
      `schemaFile: schema.zed\nrelationships: |-\n${block(RELATIONSHIPS)}\nassertions: {}\n`,
    );
    const named = file('named.yaml', 'schemaFile: schema.zed\nrelationshipsFile: rels.txt\n');
    const path = file('path.yaml', 'schemaFile: schema.zed\nrelationships: rels.txt\n');
    const outputs = [
      spawned([], 'convert', text, '--model', zed),
      await model('convert', validation),
      await model('convert', named),
      await model('convert', path),
    ];
    for (const one of outputs) {
      expect(one.status, one.stderr).toBe(0);
      expect(one.stdout).toBe(outputs[0]?.stdout);
      expect(one.stderr).toContain('6 tuples written');
    }
    const projectId = await newProject(instance, { model_json: json.stdout });
    const lines = outputs[0]?.stdout ?? '';
    const done = await postLines(instance, `?project_id=${projectId}`, lines);
    expect(done.status, JSON.stringify(done.body)).toBe(200);
    const allowed: unknown[] = [];
    for (const [user, object, context] of QUESTIONS) {
      const [namespace = '', object_id = ''] = object.split(':');
      const asked = {
        project_id: projectId,
        namespace,
        object_id,
        relation: 'view',
        subject_user_id: user,
      };
      const answer = await call(instance, 'AuthzService/Check', {
        ...asked,
        ...(context && { context }),
      });
      allowed.push(answer.body['allowed']);
    }
    expect(allowed).toEqual([true, true, true, false, true, false]);
    const wrong = file(
      'w.yaml',
      'schemaFile: schema.zed\nrelationships: |-\n  doc:a#viewer@user:ann\n\n  doc:a#viewer\n',
    );
    expect((await model('convert', wrong)).stderr).toContain('w.yaml:5: the relationship');
    const outside = file('x.yaml', 'schemaFile: schema.zed\nrelationshipsFile: ../secret.txt\n');
    expect(spawned([], 'convert', outside)).toMatchObject({ status: 2 });
  }, 120_000);
});
