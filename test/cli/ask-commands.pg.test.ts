/* `gatehouse check`, `explain`, `list` and `subjects`, as people run them against a service. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Ended, gatehouseCommand } from '../support/gatehouse-command.ts';
import { instanceForFile } from '../support/instance.ts';

const { instance } = await instanceForFile();
const command = gatehouseCommand();

const MODEL = {
  conditions: {
    in_office: { parameters: { ip: 'ipaddress' }, expression: "ip.in_cidr('10.0.0.0/8')" },
  },
  namespaces: {
    doc: {
      relations: {
        banned: { subjects: ['user'] },
        reader: {
          subjects: ['user', 'user:*', 'group#member', { type: 'user', condition: 'in_office' }],
        },
        viewer: { exclusion: { include: { computed: 'reader' }, exclude: { computed: 'banned' } } },
      },
    },
  },
};

const ENVIRONMENT = {
  GATEHOUSE_URL: instance.baseUrl,
  GATEHOUSE_TOKEN: instance.token,
  GATEHOUSE_ADMIN_SECRET: instance.adminSecret,
};

const ask = (...args: readonly string[]): Promise<Ended> =>
  command.run(args, { ...ENVIRONMENT, GATEHOUSE_PROJECT: 'cli' });

async function post(method: string, body: object): Promise<void> {
  const response = await fetch(`${instance.baseUrl}/${method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${instance.token}`,
      'x-admin-secret': instance.adminSecret,
    },
    body: JSON.stringify(body),
  });
  expect(response.status, await response.text()).toBe(200);
}

const tuple = (id: string, relation: string, subject: object, more: object = {}) => ({
  op: 'OP_INSERT',
  tuple: { namespace: id.split(':')[0], object_id: id.split(':')[1], relation, subject, ...more },
});

beforeAll(async () => {
  await post('workspace.v1.AdminService/CreateProject', {
    id: 'cli',
    name: 'cli',
    model_json: JSON.stringify(MODEL),
  });
  const member = { namespace: 'group', object_id: 'eng', relation: 'member' };
  await post('gatehouse.v1.TupleService/WriteTuples', {
    project_id: 'cli',
    updates: [
      tuple('doc:plan', 'reader', { set: member }),
      tuple('group:eng', 'member', { user_id: 'ann' }),
      tuple('group:eng', 'member', { user_id: 'mal' }),
      tuple('doc:plan', 'banned', { user_id: 'mal' }),
      tuple('doc:plan', 'reader', { user_id: 'eve' }, { condition_name: 'in_office' }),
      tuple('doc:open', 'reader', { wildcard: true }),
      tuple('doc:open', 'banned', { user_id: 'mal' }),
    ],
  });
});

describe('check', () => {
  test.each([
    ['an allow', ['doc:plan#viewer@user:ann'], 0, 'allow\n', ''],
    ['a deny', ['doc:plan#viewer@user:bob'], 1, 'deny\n', ''],
    ['a ban', ['doc:plan#viewer@user:mal'], 1, 'deny\n', ''],
    ['a missing input', ['doc:plan#viewer@user:eve'], 3, 'undecided\n', ''],
    ['an input', ['doc:plan#viewer@user:eve', '--input', '{"ip":"10.1.2.3"}'], 0, 'allow\n', ''],
    [
      'a contextual tuple',
      ['doc:plan#viewer@user:bob', '--with', 'group:eng#member@user:bob'],
      0,
      'allow\n',
      '',
    ],
    ['a userset', ['doc:plan#viewer@group:eng#member', '--exact'], 0, 'allow\n', ''],
    [
      'a relation that is not there',
      ['doc:plan#veiwer@user:ann'],
      1,
      'deny\n',
      'doc:plan#veiwer@user:ann: the model has no such relation\n',
    ],
    [
      'several, of which the worst counts',
      ['doc:plan#viewer@user:ann', 'doc:plan#viewer@user:bob', 'doc:plan#viewer@user:eve'],
      3,
      'allow      doc:plan#viewer@user:ann\ndeny       doc:plan#viewer@user:bob\nundecided  doc:plan#viewer@user:eve\n',
      '',
    ],
  ])('%s', async (_, args, code, out, err) => {
    expect(await ask('check', ...args)).toEqual({ code, out, err });
  });

  test('questions of a file, and what is wrong with its third line', async () => {
    writeFileSync(
      join(command.folder, 'q.txt'),
      '# two\ndoc:plan#viewer@user:ann\n\ndoc:open#viewer@user:zoe\n',
    );
    expect(await ask('check', '--file', 'q.txt')).toEqual({
      code: 0,
      out: 'allow      doc:plan#viewer@user:ann\nallow      doc:open#viewer@user:zoe\n',
      err: '',
    });
    writeFileSync(join(command.folder, 'bad.txt'), 'doc:plan#viewer@user:ann\n\ndoc:plan\n');
    expect(await ask('check', '--file', 'bad.txt')).toEqual({
      code: 2,
      out: '',
      err: 'error: bad.txt:3: doc:plan: must read namespace:object#relation@subject\n',
    });
  });

  test('an answer for programs', async () => {
    const { code, out } = await ask('check', 'doc:plan#viewer@user:eve', '--json');
    expect(code).toBe(3);
    expect(JSON.parse(out)).toMatchObject({ allowed: false, undecided: true });
    const several = await ask(
      'check',
      '--json',
      'doc:plan#viewer@user:ann',
      'doc:plan#viewer@user:bob',
    );
    expect(JSON.parse(several.out)).toMatchObject([
      { question: 'doc:plan#viewer@user:ann', allowed: true },
      { question: 'doc:plan#viewer@user:bob', allowed: false },
    ]);
  });

  test.each([
    ['no question', [], 'what is asked? check doc:plan#viewer@user:ann'],
    ['no tuple', ['doc:plan'], 'doc:plan: must read namespace:object#relation@subject'],
    [
      'input that is no JSON',
      ['doc:a#b@user:c', '--input', '{'],
      "--input: Expected property name or '}' in JSON at position 1 (line 1 column 2)",
    ],
    [
      'input that is a list',
      ['doc:a#b@user:c', '--input', '[]'],
      '--input: must be an object of JSON',
    ],
    [
      'an option of another command',
      ['doc:a#b@user:c', '--of', 'group'],
      '--of is no option of check',
    ],
    [
      'an option that is not there',
      ['doc:a#b@user:c', '--exakt'],
      'there is no option --exakt; did you mean --exact?',
    ],
    [
      'an option without its value',
      ['doc:a#b@user:c', '--input'],
      '--input needs a value: --input JSON',
    ],
    [
      'a time that is none',
      ['doc:a#b@user:c', '--timeout', '0'],
      '--timeout: must be a whole number from 1 to 86400',
    ],
  ])('%s is refused, and names what is wrong', async (_, args, message) => {
    expect(await ask('check', ...args)).toEqual({
      code: 2,
      out: '',
      err: `error: ${message}\nSee: gatehouse check --help\n`,
    });
  });
});

describe('explain', () => {
  test('an allow, by its tuples', async () => {
    expect(await ask('explain', 'doc:plan#viewer@user:ann')).toEqual({
      code: 0,
      out: `allow doc:plan#viewer@user:ann
  doc:plan#viewer  exclusion
    doc:plan#viewer  computed
      doc:plan#reader  userset: doc:plan#reader@group:eng#member
        group:eng#member  direct: group:eng#member@user:ann
`,
      err: '',
    });
  });

  test('a ban, by its tuple', async () => {
    const { code, out } = await ask('explain', 'doc:plan#viewer@user:mal');
    expect(code).toBe(1);
    expect(out).toBe(`deny doc:plan#viewer@user:mal
  excluded: user:mal is excluded from doc:plan#viewer
    doc:plan#viewer  computed
      doc:plan#banned  direct: doc:plan#banned@user:mal
`);
  });

  test('a grant that is missing, and what would help', async () => {
    const { code, out } = await ask('explain', 'doc:plan#viewer@user:bob', '--remedies', '2');
    expect(code).toBe(1);
    expect(out).toContain(
      '  any of these would allow it:\n    doc:plan#reader@user:bob\n    group:eng#member@user:bob\n',
    );
  });

  test('an input that is missing: 3', async () => {
    const { code, out } = await ask('explain', 'doc:plan#viewer@user:eve');
    expect(code).toBe(3);
    expect(out).toContain('    inputs that are missing: ip\n');
    expect(out).toContain('    doc:plan#reader@user:eve if in_office\n');
  });
});

describe('lists', () => {
  test('objects of a subject; what needs an input is said', async () => {
    expect(await ask('list', 'doc#viewer@user:ann')).toEqual({
      code: 0,
      out: 'doc:open\ndoc:plan\n',
      err: '',
    });
    expect(await ask('list', 'doc#viewer@user:ann', '--limit', '1')).toEqual({
      code: 0,
      out: 'doc:open\n',
      err: 'there are more\n',
    });
    const { code, out } = await ask('list', 'doc#viewer@user:eve', '--jsonl');
    expect({ code, out }).toEqual({ code: 3, out: '{"object":"doc:open"}\n' });
  });

  test('subjects of an object, everybody and usersets', async () => {
    expect(await ask('subjects', 'doc:plan#viewer')).toEqual({
      code: 3,
      out: 'user:ann\nuser:eve  undecided\n',
      err: '',
    });
    expect(await ask('subjects', 'doc:open#viewer', '--json')).toMatchObject({ code: 0 });
    expect(await ask('subjects', 'doc:open#viewer')).toEqual({
      code: 0,
      out: 'user:*\nuser:mal  excluded\n',
      err: '',
    });
    expect(await ask('subjects', 'doc:plan#reader', '--of', 'group#member')).toEqual({
      code: 0,
      out: 'group:eng#member\n',
      err: '',
    });
  });

  test.each([
    [
      ['list', 'doc:plan#viewer@user:ann'],
      'doc:plan#viewer@user:ann: must read namespace#relation@subject',
    ],
    [['subjects', 'doc:plan'], 'doc:plan: must read namespace:object#relation'],
  ])('%s is refused', async (args, message) => {
    const { code, err } = await ask(...args);
    expect(code).toBe(2);
    expect(err).toContain(`error: ${message}\n`);
  });
});
