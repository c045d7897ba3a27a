/**
 * A pull request of a fork whose steps try to get at the runner, its user and the project, each way that is
 * known. The runner is real: once as root, whose jobs of forks are another user's, once as a user without
 * rights, whose jobs are in namespaces of their own.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { runEnded } from '../../support/runner.ts';
import { inLong, inShort } from '../../support/test-length.ts';
import { commitAll, fingerprint, git, put } from '../support/git-project.ts';

const HOOK_SECRET = 'webhook-s3cret-of-the-runner';
const KEY = 'the key of the secrets of the runner';
const PLANTED = 'pl4nted-s3cret-value';
const isRoot = process.geteuid?.() === 0;
const USER = 1000;
const asUser = ['--reuid=1000', '--regid=1000', '--clear-groups', '--'] as const;

/** Whether a user without rights may do here what the test needs: read Node, and make namespaces. */
function canBeUser(): boolean {
  const unshare = ['unshare', '-Urmpf', '--net', process.execPath, '-e', ''] as const;
  const [file, ...args] = isRoot ? (['setpriv', ...asUser, ...unshare] as const) : unshare;
  const source = new URL('../../../src/runner/main.ts', import.meta.url).pathname;
  const canRead = spawnSync('setpriv', [...asUser, 'cat', source]).status === 0;
  return spawnSync(file ?? '', args).status === 0 && (!isRoot || canRead);
}

const canUnshare = !isRoot || spawnSync('unshare', ['--mount', 'true']).status === 0;

const MODES = [
  { mode: 'root, which gives jobs to another user', uid: 0, isPossible: isRoot },
  {
    mode: 'a user, which puts jobs into namespaces',
    uid: isRoot ? USER : -1,
    isPossible: canBeUser(),
  },
] as const;

let base = '';
afterEach(() => rmSync(base, { recursive: true, force: true }));

type Target = { readonly url: string; readonly pid: number; readonly project: string };

async function startRunnerAs(uid: number, project: string): Promise<Target> {
  const args = ['src/runner/main.ts', project];
  const [file, ...rest] =
    uid === USER ? ['setpriv', ...asUser, process.execPath, ...args] : [process.execPath, ...args];
  const child = spawn(file ?? '', rest, {
    env: {
      PATH: process.env['PATH'],
      HOME: join(base, 'home'),
      XDG_CONFIG_HOME: join(base, 'home', 'config'),
      TMPDIR: join(base, 'tmp'),
      PORT: '0',
      HOST: '127.0.0.1',
      RUNNER_DISK_FLOOR_BYTES: '0',
      RUNNER_WEBHOOK_SECRET: HOOK_SECRET,
      RUNNER_SECRETS_KEY: KEY,
      RUNNER_FORK_APPROVAL: 'always',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let said = '';
  for await (const line of createInterface({ input: child.stderr })) {
    said += `${line}\n`;
    const entry = JSON.parse(line) as { event?: string; msg?: string; port?: number };
    if (entry.port === undefined) continue;
    child.stderr.resume();
    return { url: `http://127.0.0.1:${entry.port}`, pid: child.pid ?? 0, project };
  }
  throw new Error(`the runner did not start: ${said}`);
}

/** Makes the project (owned by `uid`), with `workflow` in a commit that only the fork has. */
function makeProject(uid: number): string {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'hostile-fork-')));
  chmodSync(base, 0o755);
  for (const name of ['home', 'tmp', 'tmp/user']) mkdirSync(join(base, name), { mode: 0o777 });
  put(join(base, 'home'), { '.ssh/id_rsa': 'private-key-of-the-user\n', '.gitconfig': '' });
  chmodSync(join(base, 'home', '.ssh', 'id_rsa'), 0o600);
  const project = join(base, 'project');
  git(base, 'init', '-q', '-b', 'main', project);
  put(project, { '.gitignore': '.runner\n', 'a.txt': 'a\n', 'secret.txt': 'unpublished\n' });
  commitAll(project, 'base');
  if (uid === USER) execFileSync('chown', ['-R', `${USER}:${USER}`, base]);
  return project;
}

function asOwner(uid: number, project: string, action: () => string): string {
  const result = action();
  if (uid === USER) execFileSync('chown', ['-R', `${USER}:${USER}`, join(project, '.git')]);
  return result;
}

async function api(target: Target, method: string, path: string, body?: object, token = true) {
  const text = readFileSync(join(target.project, '.runner', 'api-token'), 'utf8').trim();
  return fetch(target.url + path, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(token ? { authorization: `Bearer ${text}` } : {}),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** Delivers a pull request of a fork, approves it, and answers with the id of its run. */
async function pull(target: Target, head: string, baseSha: string): Promise<string> {
  const body = JSON.stringify({
    action: 'opened',
    number: 1,
    pull_request: {
      number: 1,
      user: { id: 5 },
      base: { ref: 'main', sha: baseSha, repo: { id: 1, full_name: 'o/r' } },
      head: { ref: 'evil', sha: head, repo: { id: 2, full_name: 'e/r' } },
    },
  });
  const response = await fetch(`${target.url}/api/sync/inbox`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-host-event': 'pull_request',
      'x-host-delivery': 'd',
      'x-host-signature-256': `sha256=${createHmac('sha256', HOOK_SECRET).update(body).digest('hex')}`,
    },
    body,
  });
  const answer = (await response.json()) as { runs: string[]; problems?: object[] };
  expect(answer.problems).toBeUndefined();
  const [id = ''] = answer.runs;
  expect((await api(target, 'POST', `/api/runs/${id}/approve`)).status).toBe(200);
  return id;
}

/** Each prints `LEAK <name>` when it succeeds. */
function attempts({ url, pid, project }: Target, victim: string): string {
  const call = (method: string, path: string, body: string): string =>
    `timeout 10 ${process.execPath} -e 'fetch("${url}${path}",{method:"${method}",headers:{"content-type":"application/json"},body:JSON.stringify(${body})}).then(r=>{console.log("status "+r.status);process.exit(r.ok?0:1)},()=>process.exit(1))'`;
  const lines: Readonly<Record<string, string>> = {
    token: `cat ${project}/.runner/api-token`,
    state: `ls ${project}/.runner && cat ${project}/.runner/*`,
    'config of the user': `(cd ${base}/home && cat config/*/* .ssh/id_rsa)`,
    'unpublished files': `cat ${project}/secret.txt && false`,
    environ: `cat /proc/${pid}/environ`,
    memory: `head -c 1 /proc/${pid}/mem`,
    descriptors: `ls /proc/${pid}/fd/0`,
    root: `cd /proc/${pid} && ls root/`,
    start: call('POST', '/api/runs', '{workflow:"w"}'),
    approve: call('POST', `/api/runs/${victim}/approve`, '{}'),
    cancel: call('POST', `/api/runs/${victim}/cancel`, '{}'),
    secret: call('PUT', '/api/secrets/X', '{value:"evil"}'),
    variable: call('PUT', '/api/variables/X', '{value:"evil"}'),
    config: call('PUT', '/api/sync/config', '{enabled:true}'),
    'write to the project': `echo evil > ${project}/evil`,
    'write to its git': `echo evil >> ${project}/.git/config`,
    hook: `echo evil > ${project}/.git/hooks/post-checkout`,
    'git config': `git -c safe.directory='*' -C ${project} config user.name evil`,
    push: `git -c safe.directory='*' push ${project} HEAD:refs/heads/evil`,
    kill: `kill -9 ${pid}`,
    stop: `kill -STOP ${pid}`,
    ptrace: `python3 -c 'import ctypes,sys; sys.exit(0 if ctypes.CDLL(None).ptrace(16, ${pid}, 0, 0) == 0 else 1)'`,
    mount: 'mount -t tmpfs tmpfs /mnt',
    'become root': `unshare -Ur cat ${project}/.runner/api-token`,
    sudo: 'sudo -n true',
    docker: 'docker ps',
  };
  return Object.entries(lines)
    .map(
      ([name, line]) => `( ${line} ) 2>/dev/null && echo "LEAK ${name}" || echo "blocked ${name}"`,
    )
    .join('\n');
}

function hostileWorkflow(target: Target, victim: string): string {
  const { project } = target;
  const indent = (text: string): string =>
    text
      .split('\n')
      .map((line) => `          ${line}`)
      .join('\n');
  return `on: pull_request
jobs:
  hostile:
    runs-on: ubuntu-latest
    outputs: { o: "\${{ steps.link.outputs.o }}" }
    steps:
      - name: attempts
        run: |
${indent(attempts(target, victim))}
          echo "attempts are over"
      - name: programs in front
        run: |
          mkdir -p "$HOME/bin"
          for name in setpriv unshare env git node docker sh mount chmod cp bash; do
            printf '#!/bin/sh\\ncat %s/.runner/api-token > %s/stolen 2>/dev/null && echo "LEAK program"\\nexec /usr/bin/%s "$@"\\n' "${project}" "$GITHUB_WORKSPACE" "$name" > "$HOME/bin/$name"
            chmod +x "$HOME/bin/$name"
          done
          echo "$HOME/bin" >> "$GITHUB_PATH"
          echo "LD_PRELOAD=$HOME/evil.so" >> "$GITHUB_ENV"
      - { name: after, uses: actions/setup-node@v4, continue-on-error: true }
      - { name: checked, uses: actions/checkout@v4 }
      - id: link
        name: links
        continue-on-error: true
        run: |
          set +e
          rm -f "$GITHUB_OUTPUT"; ln -s ${project}/.runner/api-token "$GITHUB_OUTPUT"
          ln -s ${project}/.runner/api-token leaked-token
          ln ${project}/.runner/api-token hard-token
          ln -s ${project}/.runner leaked-state
          mkdir -p action; ln -s ${project}/.runner/api-token action/action.yml
          echo "::add-matcher::${project}/.runner/api-token"
          echo "::add-matcher::leaked-token"
      - { name: linked action, uses: ./action, continue-on-error: true }
      - { name: action elsewhere, uses: ./../../../../../../../../${project.slice(1)}/.runner, continue-on-error: true }
      - name: upload
        uses: actions/upload-artifact@v4
        continue-on-error: true
        with: { name: loot, include-hidden-files: true, path: "\${{ github.workspace }}" }
      - name: upload elsewhere
        uses: actions/upload-artifact@v4
        continue-on-error: true
        with: { name: more, include-hidden-files: true, path: "${project}" }
      - name: upload a link as it is
        uses: actions/upload-artifact@v7
        continue-on-error: true
        with: { archive: false, if-no-files-found: error, path: leaked-token }
      - run: printf own > own.html; truncate -s 5G huge
      - name: upload more than there is room for
        uses: actions/upload-artifact@v7
        continue-on-error: true
        with: { archive: false, path: huge }
      - { uses: actions/upload-artifact@v7, with: { archive: false, path: "*.html" } }
      - { uses: actions/download-artifact@v8, with: { name: own.html, path: back } }
      - { run: 'rm huge; echo "back=[$(cat back/own.html)]"' }
      - name: hash
        if: always()
        env: { H: "\${{ hashFiles('leaked-token', 'leaked-state/**') }}", T: "\${{ hashFiles('a.txt') }}" }
        run: echo "hash=[$H] own=\${#T}"
      - name: cache
        if: always()
        uses: actions/cache@v4
        with: { key: k, path: "${join(base, 'home')}/.ssh" }
      - name: cached
        if: always()
        run: find . / -maxdepth 3 -name id_rsa 2>/dev/null | head -3 || true
      - name: docker
        continue-on-error: true
        uses: docker://alpine
      - name: leave
        if: always()
        run: |
          setsid sh -c 'env -i sh -c "(trap \\"\\" TERM INT HUP; sleep 31415.9) &" &' &
          ( while :; do setsid env -i sleep 31415.9 & sleep 0.2; done ) > /dev/null 2>&1 &
          echo left
`;
}

inShort(describe).each(MODES)('the runner is $mode', ({ uid, isPossible }) => {
  test.skipIf(!isPossible)(
    'no step gets at anything, and nothing stays',
    async () => {
      const project = makeProject(uid);
      const target = await startRunnerAs(uid, project);
      expect((await api(target, 'PUT', '/api/secrets/S', { value: PLANTED })).status).toBe(201);
      const baseSha = git(project, '-c', 'safe.directory=*', 'rev-parse', 'HEAD');
      const token = readFileSync(join(project, '.runner', 'api-token'), 'utf8').trim();

      // The fork's commit comes by a bundle of objects that no branch of the project has.
      const victim = 'no-such-run';
      const head = asOwner(uid, project, () => {
        put(project, { '.github/workflows/w.yml': hostileWorkflow(target, victim) });
        const safe = ['-c', 'safe.directory=*'] as const;
        git(project, ...safe, 'add', '-A');
        const tree = git(project, ...safe, 'write-tree');
        const made = git(project, ...safe, 'commit-tree', '-p', baseSha, '-m', 'evil', tree);
        git(project, ...safe, 'reset', '-q', '--hard', 'HEAD');
        return made;
      });
      const before = fingerprint(join(project, '.git'));
      const id = await pull(target, head, baseSha);

      // While it runs nobody changes anything without the token; afterwards as before.
      let during = 0;
      while (during !== 401) {
        during = (await api(target, 'PUT', '/api/variables/OPEN', { value: 'x' }, false)).status;
        if (
          (await fetch(`${target.url}/api/runs/${id}`).then((r) => r.text())).includes(
            'completedAt":"',
          )
        )
          break;
      }
      expect(during).toBe(401);
      const run = await runEnded(target.url, id);
      const log = await (await fetch(`${target.url}/api/runs/${id}/logs`)).text();
      const notes = await (await fetch(`${target.url}/api/runs/${id}/annotations`)).text();
      const seen = log + notes + JSON.stringify(run);

      expect(log).toContain('attempts are over');
      expect(log.split('\n').filter((line) => line.startsWith('LEAK'))).toEqual([]);
      for (const secret of [token, PLANTED, HOOK_SECRET, KEY, 'private-key-of-the-user']) {
        expect(seen).not.toContain(secret);
      }
      // What others may read is seen all the same where the system lets root make no namespace.
      if (canUnshare) expect(log).not.toContain('unpublished\n');
      expect(log).toContain('hash=[] own=64');
      expect(log).not.toContain('id_rsa');
      expect(log).toMatch(/needs a container, which a job of a fork does not get/);

      // Artifacts hold nothing but the job's own.
      const artifacts = (await (await fetch(`${target.url}/api/runs/${id}/artifacts`)).json()) as {
        name: string;
        mimeType: string;
        path: string;
      }[];
      expect(log).toContain('back=[own]');
      expect(log).toContain('path: the files have more than 4294967296 bytes together');
      const plain = artifacts.filter(({ mimeType }) => mimeType !== 'application/zip');
      expect(plain.map(({ name }) => name)).toEqual(['own.html']);
      for (const { path } of artifacts.filter((one) => !plain.includes(one))) {
        const names = execFileSync('python3', ['-m', 'zipfile', '-l', path]).toString();
        expect(names).not.toMatch(/token|secrets\.json|leaked/);
      }

      // The project and the user are as they were, and no process is left.
      expect(fingerprint(join(project, '.git'))).toEqual(before);
      expect(existsSync(join(project, 'evil'))).toBe(false);
      expect((await fetch(`${target.url}/health`)).status).toBe(200);
      expect(spawnSync('pgrep', ['-f', 'sleep 31415.9']).stdout.toString()).toBe('');
      expect(readdirSync(join(project, '.runner', 'fork-folders'))).toEqual([]);
      const after = await api(target, 'PUT', '/api/variables/OPEN', { value: 'x' }, false);
      expect(after.status).toBeLessThan(300);
    },
    120_000,
  );
});

inLong(test).skipIf(!isRoot)(
  'what a killed runner left of a fork goes at the next start',
  async () => {
    const project = makeProject(0);
    const first = await startRunnerAs(0, project);
    const baseSha = git(project, 'rev-parse', 'HEAD');
    put(project, {
      '.github/workflows/w.yml':
        'on: pull_request\njobs: { j: { runs-on: x, steps: [{ run: "setsid env -i sleep 27182.8 & sleep 300" }] } }\n',
    });
    const head = commitAll(project, 'long');
    git(project, 'reset', '-q', '--hard', baseSha);
    await pull(first, head, baseSha);
    const marks = join(project, '.runner', 'fork-folders');
    const running = (): string => spawnSync('pgrep', ['-f', 'sleep 27182.8']).stdout.toString();
    await expect.poll(running, { timeout: 30_000 }).not.toBe('');
    const [mark = ''] = readdirSync(marks);
    const [folder = ''] = readFileSync(join(marks, mark), 'utf8').split('\n');
    expect(existsSync(folder)).toBe(true);
    process.kill(first.pid, 'SIGKILL');
    await expect.poll(() => existsSync(`/proc/${first.pid}`), { timeout: 10_000 }).toBe(false);
    await startRunnerAs(0, project);
    expect(existsSync(folder)).toBe(false);
    expect(running()).toBe('');
    expect(readdirSync(marks)).toEqual([]);
    chownSync(base, 0, 0);
  },
  120_000,
);
