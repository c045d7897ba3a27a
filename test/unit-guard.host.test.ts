import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CaseFolder } from './support/vitest-run.ts';

/** What a unit test must not do, as code, and the name that the failure has. */
const FORBIDDEN: readonly (readonly [code: string, name: string])[] = [
  ["childProcess.spawn('true')", 'child_process.spawn'],
  ["childProcess.execFileSync('true')", 'child_process.execFileSync'],
  ["fork('x.js')", 'child_process.fork'],
  ["net.createServer().listen(0, '127.0.0.1')", 'net.Server.listen'],
  ["http.createServer().listen(0, '127.0.0.1')", 'net.Server.listen'],
  ["await fetch('http://127.0.0.1:40009')", 'net.Socket.connect'],
  ["await new pg.Client('postgres://127.0.0.1:1/x').connect()", 'net.Socket.connect'],
  ["void createHttpServer({ host: '127.0.0.1', port: 0 }).listen()", 'net.Server.listen'],
  [
    "spawnNative({ file: '/bin/true', args: [], cwd: '/', env: {}, stdoutFd: 1, stderrFd: 2 })",
    'posix_spawn',
  ],
];

const urlOf = (path: string): string => JSON.stringify(pathToFileURL(resolve(path)).href);
const IMPORTS = `
import childProcess, { fork } from 'node:child_process';
import http from 'node:http';
import net from 'node:net';
import pg from ${urlOf('node_modules/pg/lib/index.js')};
import { createHttpServer } from ${urlOf('src/http/listener/http-server.ts')};
import { spawnNative } from ${urlOf('src/shared/process/native-spawn.ts')};
`;

const folder = new CaseFolder({ setupFiles: [resolve('test/support/unit-guard.ts')] });
afterAll(() => folder.remove());

let output: string;
beforeAll(() => {
  FORBIDDEN.forEach(([code], index) => {
    // The failure is swallowed, as code that copes with it would.
    const body = `async () => { try { ${code}; } catch (error) { void error; } }`;
    folder.write(`bad-${index}.case.js`, `${IMPORTS}\ntest('${index}', ${body});`);
  });
  const { status, output: text } = folder.run('bad');
  expect(status).toBe(1);
  output = text;
}, 120_000);

test.each(FORBIDDEN.map(([code, name], index) => ({ code, name, index })))(
  'a unit test fails that calls $code',
  ({ name, index }) => {
    const section = new RegExp(`FAIL +bad-${index}\\.case\\.js > ${index}\n(?:.*\n){0,3}`).exec(
      output,
    );
    expect(section?.[0] ?? output).toContain(`a unit test must not call ${name}`);
  },
);

test('what only computes, and files, are fine', () => {
  const code = `const fs = await import('node:fs'); fs.readdirSync('.'); expect(1).toBe(1);`;
  folder.write('good.case.js', `${IMPORTS}\ntest('good', async () => { ${code} });`);
  const { status, output: text } = folder.run('good');
  expect(text).toContain('1 passed');
  expect(status).toBe(0);
});
