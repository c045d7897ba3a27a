/**
 * A code host to try the runner's sync against: `node test/support/run-fake-code-host.ts [port]`.
 * Prints the settings to start the runner with, and goes on until it is interrupted.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeCodeHost } from './fake-code-host.ts';
import { gitIn } from './fake-host-git.ts';

const host = await startFakeCodeHost({ port: Number(process.argv[2] ?? 0) });
const { state } = host;
const first = state.addIssue({
  title: 'Deployments',
  body: 'The mirror writes its comments here.',
});
state.addIssue({ title: 'The light blinks', labels: ['bug'] });
state.addDiscussion({ title: 'What next?', category: 'Ideas' });
state.addRelease({ tag_name: 'v1.0.0', name: 'One', body: 'The first.' });
await host.writeWiki({ 'Home.md': '# Welcome\n', 'How-to-begin.md': 'Slowly.\n' });

const work = await mkdtemp(join(tmpdir(), 'fake-host-seed-'));
await gitIn(work, 'init', '--quiet', '--initial-branch=main');
await writeFile(join(work, 'README.md'), '# Demo\n');
await gitIn(work, 'add', '.');
await gitIn(work, 'commit', '--quiet', '-m', 'Begin');
await gitIn(work, 'push', '--quiet', host.repositoryDir, 'main');
await rm(work, { recursive: true });

process.stdout.write(
  [
    `RUNNER_HOST_API_URL=${host.apiUrl}`,
    `RUNNER_HOST_GIT_URL=${host.gitUrl}`,
    `RUNNER_HOST_TOKEN=${host.token}`,
    `# repository ${host.owner}/${host.repo}; issue for deployments: ${first.number}`,
    `# clone it from ${host.fileGitUrl}/${host.owner}/${host.repo}.git`,
    '',
  ].join('\n'),
);

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void host.close();
  });
}
