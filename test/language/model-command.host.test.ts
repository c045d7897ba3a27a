import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { type ScriptResult, scriptInProcess } from '../support/script-in-process.ts';

/* `gatehouse model …`: in this process, but for what reads the standard input. */
const ROOT = path.join(import.meta.dirname, '..', '..');
const folder = mkdtempSync(path.join(tmpdir(), 'model-command-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Processes start slowly beside others. */
vi.setConfig({ testTimeout: 120_000 });

const model = (args: readonly string[]): Promise<ScriptResult> =>
  scriptInProcess(path.join(ROOT, 'src', 'gatehouse.ts'), ['model', ...args], folder);

/** As people run it, in a process of its own. */
function piped(args: readonly string[], input: string): ScriptResult {
  const run = spawnSync(path.join(ROOT, 'bin', 'gatehouse'), ['model', ...args], {
    cwd: folder,
    input,
    encoding: 'utf8',
  });
  return { code: run.status ?? undefined, out: run.stdout, err: run.stderr };
}

function file(name: string, text: string): string {
  const found = path.join(folder, name);
  mkdirSync(path.dirname(found), { recursive: true });
  writeFileSync(found, text);
  return name;
}

function textOf(name: string): string {
  return readFileSync(path.join(folder, name), 'utf8');
}

const GATE =
  '// Files.\nnamespace doc {\n  relation owner: [user]\n  relation viewer: [user] or owner\n}\n';
const JSON_TEXT =
  '{"namespaces":{"doc":{"relations":{"owner":{"subjects":["user"]},"viewer":{"union":[{"this":{}},{"computed":"owner"}],"subjects":["user"]}}}}}';

describe('help and usage', () => {
  const NAMES = ['validate', 'check', 'format', 'convert', 'import', 'types', 'test'];
  const OTHERS = ['diff', 'apply', 'history', 'show', 'roll-back'];

  test('the list of subcommands', async () => {
    const help = await model(['--help']);
    expect(help.code).toBe(0);
    expect([...help.out.matchAll(/^ {2}([\w-]+)/gm)].map(([, name]) => name)).toEqual([
      ...NAMES,
      ...OTHERS,
    ]);
  });

  test.each(NAMES)('the help of %s', async (name) => {
    const help = await model([name, '--help']);
    expect(help).toMatchObject({ code: 0, err: '' });
    expect(help.out).toContain(`Usage: gatehouse model ${name}`);
    expect(help.out).toContain('exit codes: 0 ');
  });

  test.each([
    [[], 'Usage:'],
    [['frobnicate'], 'there is no command model frobnicate'],
    [['format'], 'which files?'],
    [['format', '--nope', 'a.gate'], 'there is no option --nope'],
    [['check', 'nowhere.gate'], 'nowhere.gate: ENOENT'],
    [['convert', 'a', 'b'], 'one file, please'],
    [['import', 'a.fga', '--from', 'elsewhere'], '--from is openfga or spicedb'],
    [['types', 'a.gate', '--name', '1 x'], '--name is no name of a type'],
    [['types'], 'one file, please'],
  ])('%j ends with 2', async (args, message) => {
    const { code, out, err } = await model(args);
    expect(code).toBe(2);
    expect(out + err).toContain(message);
  });
});

describe('format', () => {
  test('in place, by --check, and from the standard input', async () => {
    const untidy = file('untidy.gate', GATE.replaceAll('  relation', ' relation'));
    const tidy = file('tidy.gate', GATE);
    expect(await model(['format', '--check', tidy])).toMatchObject({ code: 0, err: '' });
    expect(await model(['format', '--check', tidy, untidy])).toMatchObject({
      code: 1,
      err: 'untidy.gate: is laid out otherwise\n',
    });
    expect(textOf(untidy)).not.toBe(GATE);
    expect(await model(['format', untidy])).toMatchObject({ code: 0, out: '', err: '' });
    expect(textOf(untidy)).toBe(GATE);
    expect(piped(['format', '-'], ` ${GATE}`)).toMatchObject({ code: 0, out: GATE });
    const wrong = file('wrong.gate', 'type user');
    expect(await model(['format', wrong])).toMatchObject({ code: 1, out: '' });
    expect(textOf(wrong)).toBe('type user');
  });
});

describe('check', () => {
  test('says what is wrong by line and column, or by path', async () => {
    expect(await model(['check', file('right.gate', GATE)])).toMatchObject({ code: 0, err: '' });
    const misspelt = file('misspelt.gate', GATE.replace('or owner', 'or onwer'));
    expect(await model(['check', misspelt])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^misspelt\.gate:4:30: error: .*"onwer".*"owner"/) as unknown,
    });
    const json = file(
      'misspelt.json',
      JSON_TEXT.replace('"computed":"owner"', '"computed":"onwer"'),
    );
    expect((await model(['check', json])).err).toContain(
      'misspelt.json:$.namespaces.doc.relations.viewer.union[1].computed: error: ',
    );
    const several = file('several.gate', 'namespace a {\n  define b: c\n  relation d: e + f\n}\n');
    const { code, err } = await model(['check', several]);
    expect(code).toBe(1);
    expect(err).toMatch(/^several\.gate:2:3: error: .*\nseveral\.gate:3:17: error: /);
  });

  test('of a model that was imported, what its conditions decide otherwise', async () => {
    const condition = 'condition slow(d: duration) {\n  d.getMilliseconds() > 500\n}\n';
    const slow = file('slow.gate', `${condition}\n${GATE}`);
    expect(await model(['check', slow])).toMatchObject({ code: 0, err: '' });
    const { code, err } = await model(['check', '--imported', slow]);
    expect(code).toBe(0);
    expect(err).toMatch(
      /^slow\.gate:\d+:\d+: warning: 1:2: getMilliseconds is read otherwise: .*\(import the model again\)\n$/,
    );
    const own = file('own.gate', `${condition.replace('getM', 'goM')}\n${GATE}`);
    expect(await model(['check', '--imported', own])).toMatchObject({ code: 0, err: '' });
    expect((await model(['check', '--url', 'http://127.0.0.1:1', slow])).code).toBe(2);
    const nowhere = await model(['check', '--stored', '--url', 'http://127.0.0.1:1']);
    expect(nowhere).toMatchObject({
      code: 4,
      err: 'error: http://127.0.0.1:1: fetch failed: bad port\n',
    });
  });
});

describe('convert', () => {
  test('both ways', async () => {
    const gate = file('both.gate', GATE);
    const json = await model(['convert', gate]);
    expect(json.code).toBe(0);
    expect(JSON.parse(json.out)).toEqual(JSON.parse(JSON_TEXT));
    file('both.json', JSON_TEXT);
    expect((await model(['convert', 'both.json', '--out', 'out.gate'])).code).toBe(0);
    expect(`// Files.\n${textOf('out.gate')}`).toBe(GATE);
    expect(piped(['convert', '-', '--to', 'gate'], JSON_TEXT).out).toBe(textOf('out.gate'));
    expect((await model(['convert', file('five.json', '{"namespaces":5}')])).code).toBe(1);
    expect((await model(['convert', file('open.json', '{')])).code).toBe(1);
    const text = '{"namespaces":{"a":{"relations":{}},"a":{"relations":{}}}}';
    const twice = await model(['convert', file('twice.json', text)]);
    expect(twice).toMatchObject({ code: 1, out: '' });
    expect(twice.err).toContain('$.namespaces: duplicate key "a"');
  });
});

describe('types', () => {
  test('of a model in either form, with the built-in namespaces', async () => {
    const fromGate = await model(['types', file('typed.gate', GATE)]);
    expect(fromGate).toMatchObject({ code: 0, err: '' });
    expect(fromGate.out).toContain('export type Model = {\n');
    expect(fromGate.out).toContain("  doc: 'owner' | 'viewer';\n");
    expect(fromGate.out).toContain("  group: 'member';\n");
    const fromJson = await model(['types', file('typed.json', JSON_TEXT), '--name', 'Drive']);
    expect(fromJson.out).toBe(fromGate.out.replace('type Model', 'type Drive'));
  });

  test('of names with hyphens, and of open namespaces', async () => {
    const text =
      '{"namespaces":{"a-b":{"relations":{"c-d":{}}},"any":{"open":true,"relations":{}}}}';
    const { out } = await model(['types', file('odd.json', text)]);
    expect(out).toContain("  'a-b': 'c-d';\n");
    expect(out).toContain('  any: string;\n');
  });

  test('a model that is wrong is none', async () => {
    const { code, out, err } = await model([
      'types',
      file('wrong.json', '{"namespaces":{"A":{}}}'),
    ]);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('wrong.json: ');
  });
});

describe('import', () => {
  const FGA =
    'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define owner: [user]\n    define viewer: [user] or owner\n';
  const store = (wanted: boolean): string =>
    [
      'model_file: ./parts/model.fga',
      'tuples: [{ user: "user:a", relation: owner, object: "doc:1" }]',
      `tests: [{ name: t, check: [{ user: "user:a", object: "doc:1", assertions: { viewer: ${wanted} } }] }]`,
    ].join('\n');

  test('OpenFGA, with its own assertions', async () => {
    file('parts/model.fga', FGA);
    file('good.fga.yaml', store(true));
    const run = await model([
      'import',
      'good.fga.yaml',
      '--out',
      'fga.gate',
      '--tests',
      'fga.yaml',
    ]);
    expect(run).toMatchObject({ code: 0, out: '' });
    expect(run.err).toContain('good.fga.yaml: 1 of 1 assertions hold, 0 could not be asked\n');
    expect(textOf('fga.gate')).toContain('  relation viewer: [user] or owner\n');
    expect(textOf('fga.yaml')).toContain('- doc:1#viewer@user:a');
    expect(await model(['test', 'fga.yaml'])).toMatchObject({
      code: 0,
      out: 'fga.yaml: 1 assertions hold\n',
    });
    expect((await model(['check', 'fga.gate'])).code).toBe(0);
  });

  test('nothing is written if an assertion is answered otherwise', async () => {
    file('parts/model.fga', FGA);
    file('bad.fga.yaml', store(false));
    const run = await model(['import', 'bad.fga.yaml']);
    expect(run).toMatchObject({ code: 1, out: '' });
    expect(run.err).toContain('differs: ');
    expect(run.err).toContain('0 of 1 assertions hold');
  });

  test('SpiceDB, as a schema or as a validation file', async () => {
    const schema =
      'definition user {}\ndefinition doc {\n  relation owner: user\n  permission view = owner\n}\n';
    file('a.zed', schema);
    file(
      'v.yaml',
      'schemaFile: a.zed\nrelationships: "doc:1#owner@user:a"\nassertions: { assertTrue: ["doc:1#view@user:a"] }\n',
    );
    const alone = await model(['import', 'a.zed']);
    const validated = await model(['import', 'v.yaml']);
    expect(alone).toMatchObject({
      code: 0,
      out: expect.stringContaining('relation view: owner') as unknown,
    });
    expect(validated).toMatchObject({ code: 0, out: alone.out });
    expect(validated.err).toContain('1 of 1 assertions hold');
  });

  test('relationships of SpiceDB that lie in another file', async () => {
    file(
      'b.zed',
      'definition user {}\ndefinition doc {\n  relation owner: user\n  permission view = owner\n}\n',
    );
    file('rels.txt', '// who owns\ndoc:1#owner@user:a\n\ndoc:2#owner@user:b\n');
    const asserted =
      'assertions: { assertTrue: ["doc:1#view@user:a", "doc:2#view@user:b"], assertFalse: ["doc:2#view@user:a"] }\n';
    const forms = ['relationshipsFile: rels.txt', 'relationships: rels.txt'];
    for (const [at, named] of forms.entries()) {
      file(`named-${at}.yaml`, `schemaFile: b.zed\n${named}\n${asserted}`);
      const run = await model(['import', `named-${at}.yaml`]);
      expect(run.err).toContain('3 of 3 assertions hold, 0 could not be asked');
      expect(run.code).toBe(0);
    }
    file('wrong.txt', 'doc:1#owner@user:a\ndoc:1#owner\n');
    const read = (named: string) => {
      file('refused.yaml', `schemaFile: b.zed\nrelationshipsFile: ${named}\n${asserted}`);
      return model(['import', 'refused.yaml']);
    };
    const malformed = await read('wrong.txt');
    expect(malformed).toMatchObject({ code: 1, out: '' });
    expect(malformed.err).toContain('wrong.txt, line 2: "doc:1#owner" is no relationship');
    expect(await read('../rels.txt')).toMatchObject({ code: 2, out: '' });
    expect(await read('missing.txt')).toMatchObject({ code: 2, out: '' });
  });

  test('what cannot be expressed is said, and nothing is written', async () => {
    file(
      'all.zed',
      'definition user {}\ndefinition doc {\n  relation team: doc\n  permission view = team.all(view)\n}\n',
    );
    const run = await model(['import', 'all.zed', '--out', 'never.gate']);
    expect(run).toMatchObject({ code: 1, out: '' });
    expect(run.err).toContain(
      'all.zed: cannot be expressed: definition doc, permission view (line 4): team.all(view) asks every',
    );
    expect(() => textOf('never.gate')).toThrow('ENOENT');
  });

  test('files of other folders are not read', async () => {
    file('inner/out.fga.yaml', 'model_file: ../parts/model.fga');
    file('inner/abs.fga.yaml', `model_file: ${path.join(folder, 'parts', 'model.fga')}`);
    for (const name of ['inner/out.fga.yaml', 'inner/abs.fga.yaml']) {
      const run = await model(['import', name]);
      expect(run).toMatchObject({ code: 2, out: '' });
      expect(run.err).toContain('does not lie in its folder or below');
    }
  });
});
