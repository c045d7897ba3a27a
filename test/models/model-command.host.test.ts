import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { scriptInProcess } from '../support/script-in-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-model-'));
afterAll(() => rmSync(folder, { recursive: true }));

const GATE = 'namespace doc {\n  relation editor\n  relation viewer: this or editor\n}\n';
const PASSING = `model_file: doc.gate
tuples: [doc:a#editor@user:eve]
tests:
  - name: editors view
    allow: [doc:a#viewer@user:eve]
    deny: [doc:a#viewer@user:bob]
`;

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

async function run(...args: readonly string[]) {
  const { code, out, err } = await scriptInProcess('src/gatehouse.ts', ['model', 'test', ...args]);
  const told = (text: string): string => text.replaceAll(folder, '.');
  return { status: code, stdout: told(out), stderr: told(err) };
}

const gate = file('doc.gate', GATE);
const passing = file('passing.yaml', PASSING);
const FAILING = PASSING.replace('deny: [', 'deny: [doc:a#editor@user:eve, ');
const failing = file('failing.yaml', FAILING);

test('what holds is told with 0, what does not by file and line with 1', async () => {
  expect(await run(passing)).toEqual({
    status: 0,
    stdout: './passing.yaml: 2 assertions hold\n',
    stderr: '',
  });
  expect(await run('--quiet', passing, failing)).toEqual({
    status: 1,
    stdout:
      './failing.yaml:6: editors view: doc:a#editor@user:eve: expected false, is true\n' +
      './failing.yaml: 3 assertions, 1 failures\n',
    stderr: '',
  });
});

test('--model goes before what the file says, and stands in where it says nothing', async () => {
  const plain = file(
    'plain.json',
    '{"namespaces":{"doc":{"relations":{"viewer":{},"editor":{}}}}}',
  );
  expect(await run('--model', plain, passing)).toMatchObject({
    status: 1,
    stdout: expect.stringContaining('expected true, is false') as string,
  });
  const bare = file('bare.yaml', PASSING.replace('model_file: doc.gate\n', ''));
  expect(await run(bare)).toMatchObject({
    status: 2,
    stderr: './bare.yaml: brings no model along: give --model\n',
  });
  expect(await run('--model', gate, bare)).toMatchObject({ status: 0 });
});

test('a file or a model that is wrong is told with its place, and 2', async () => {
  const slip = file('slip.yaml', PASSING.replace('allow', 'alow'));
  expect(await run(slip)).toMatchObject({
    status: 2,
    stderr: './slip.yaml:5:5: "alow" is not known here; did you mean "allow"?\n',
  });
  const wrong = file('wrong.gate', 'namespace {');
  expect(await run('--model', wrong, passing)).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/^\.\/wrong\.gate: .*line 1/) as string,
  });
  expect(await run(join(folder, 'nowhere.yaml'))).toMatchObject({ status: 2 });
  expect(await run()).toMatchObject({ status: 2 });
});

test('--junit writes a case for each test besides, and one for a file that is wrong', async () => {
  const results = join(folder, 'results.xml');
  const named = file(
    'named.yaml',
    FAILING.replace('editors view', '"a <b> & \\"c\\" \\u0001\\t]]>"'),
  );
  const wrong = file('none.yaml', PASSING.replace('model_file: doc.gate\n', ''));
  const { status, stdout } = await run('--junit', results, passing, named, wrong);
  expect(status).toBe(2);
  expect(stdout).toContain('./passing.yaml: 2 assertions hold\n');
  const name = 'a &lt;b&gt; &amp; &quot;c&quot; \uFFFD&#9;]]&gt;';
  const fails = (text: string): string =>
    `./named.yaml:6: ${text}: doc:a#editor@user:eve: expected false, is true`;
  const error = './none.yaml: brings no model along: give --model';
  expect(readFileSync(results, 'utf8').replaceAll(folder, '.'))
    .toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="gatehouse model test" tests="3" failures="1" errors="1">
  <testsuite name="./passing.yaml" tests="1" failures="0" errors="0">
    <testcase classname="./passing.yaml" name="editors view" file="./passing.yaml" assertions="2"/>
  </testsuite>
  <testsuite name="./named.yaml" tests="1" failures="1" errors="0">
    <testcase classname="./named.yaml" name="${name}" file="./named.yaml" assertions="3"><failure message="${fails(name)}" type="assertion">${fails('a &lt;b&gt; &amp; "c" \uFFFD\t]]&gt;')}</failure></testcase>
  </testsuite>
  <testsuite name="./none.yaml" tests="1" failures="0" errors="1">
    <testcase classname="./none.yaml" name="./none.yaml" file="./none.yaml"><error message="${error}" type="file">${error}</error></testcase>
  </testsuite>
</testsuites>
`);
  expect(await run('--junit', join(folder, 'no', 'folder.xml'), passing)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('folder.xml: ENOENT') as string,
  });
});
