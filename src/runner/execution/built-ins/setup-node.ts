import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { nodeWish } from '../../host/tools/node-version.ts';
import { failureOf, runClient } from '../../host/tools/run-client.ts';
import { refuseOtherArchitecture } from '../../host/tools/tool-registry.ts';
import { findOrGet } from '../../host/tools/tool-source.ts';
import { layForJob } from '../state/job-tool-folders.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, flagOf } from './built-in-call.ts';
import {
  addBin,
  askedVersions,
  mustToolRegistry,
  progressOf,
  reportCache,
} from './tool-request.ts';

/** What actions/setup-node sets where nobody gave a token, so that npm's settings can be read. */
const NO_TOKEN = 'XXXXX-XXXXX-XXXXX-XXXXX';

/**
 * actions/setup-node: the version asked for, found on this machine or installed, as the job's own. Without
 * a version steps use the node that they find. Errors: NOT_FOUND, which says what is here instead.
 */
export async function runSetupNode(call: BuiltInCall): Promise<boolean> {
  const { given, run, frame } = call;
  refuseOtherArchitecture(inputOf(given, 'architecture'));
  const inputs = { version: 'node-version', file: 'node-version-file', usual: [] };
  const { versions, from } = await askedVersions(call, 'node', inputs);
  reportCache(call, 'cache');
  const [asked] = versions;
  if (asked === undefined) {
    const version = await versionOnPath(call);
    run.log.say(`No version is asked for: steps use Node ${version} of this host`);
    run.outputs.set('node-version', version);
    await setRegistry(call);
    return true;
  }
  const registry = mustToolRegistry(call);
  const wish = nodeWish(asked, Date.now());
  const isLatestWanted = flagOf(call, 'check-latest');
  const tool = await findOrGet(registry.node, { wish, isLatestWanted, ...progressOf(run) });
  const missing: string[] = [];
  const dir = await layForJob(frame.job, `node-${tool.version}`, async (making) => {
    missing.push(...(await registry.node.lay(tool, making, progressOf(run))));
  });
  for (const what of missing) run.log.warn(`Node ${tool.version} is without ${what}`);
  addBin(call, dir);
  run.log.say(`Node ${tool.version} (${tool.source}), for ${asked} of ${from}`);
  run.outputs.set('node-version', `v${tool.version}`);
  await setRegistry(call);
  return true;
}

/** `registry-url` and `scope`: settings of npm that take the token from NODE_AUTH_TOKEN. */
async function setRegistry({ given, run, frame }: BuiltInCall): Promise<void> {
  const url = inputOf(given, 'registry-url');
  if (url === '') return;
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new AppError('INVALID_VALUE', 'registry-url: is no address', { field: 'registry-url' });
  }
  const address = parsed.href.endsWith('/') ? parsed.href : `${parsed.href}/`;
  const scope = inputOf(given, 'scope');
  const name = scope === '' ? '' : `${scope.startsWith('@') ? scope : `@${scope}`}:`;
  const lines = [
    `${address.slice(parsed.protocol.length)}:_authToken=\${NODE_AUTH_TOKEN}`,
    `${name.toLowerCase()}registry=${address}`,
    '',
  ];
  const dir = await layForJob(frame.job, 'npm-settings', (making) => {
    mkdirSync(making, { mode: 0o755 });
    writeFileSync(join(making, '.npmrc'), lines.join('\n'), { mode: 0o644 });
    return Promise.resolve();
  });
  run.environment.set('NPM_CONFIG_USERCONFIG', join(dir, '.npmrc'));
  const hasToken = (run.environment.values['NODE_AUTH_TOKEN'] ?? '') !== '';
  if (!hasToken) run.environment.set('NODE_AUTH_TOKEN', NO_TOKEN);
}

/** A program that a job of a fork may have chosen is started as that job starts it. */
async function versionOnPath({ frame, run }: BuiltInCall): Promise<string> {
  const { isolation } = frame.job.request;
  const { folders, baseVariables } = frame.job;
  const path = run.environment.pathInFrontOf(baseVariables['PATH']);
  const program = frame.job.finder.find('node', path) ?? process.execPath;
  // A step may have put another program of that name in front: it gets what steps get.
  const env = { ...baseVariables, PATH: path };
  const start = { file: program, args: ['--version'], cwd: folders.workspace, env };
  const { file, args, ...options } = isolation?.wrap(start) ?? start;
  const result = await runClient(file, args, { ...options, signal: run.signal });
  if (result.code === 0) return result.stdout.trim();
  const why = failureOf(result, 'first', (text) => frame.job.masker.mask(text));
  const text = `The Node that steps find, ${program}, does not run: ${why}`;
  throw new AppError('NOT_FOUND', text, { field: 'node-version' });
}
