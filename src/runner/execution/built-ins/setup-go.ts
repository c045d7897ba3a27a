import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { goWish } from '../../host/tools/go-tools.ts';
import { copyTree, failureOf, runClient } from '../../host/tools/run-client.ts';
import { refuseOtherArchitecture } from '../../host/tools/tool-registry.ts';
import { findOrGet, type ToolAtHand } from '../../host/tools/tool-source.ts';
import { newestFirst } from '../../host/tools/tool-version.ts';
import { layForJob } from '../state/job-tool-folders.ts';
import { inputOf } from '../steps/step-input.ts';
import { processEnvironment } from '../steps/step-variables.ts';
import { type BuiltInCall, flagOf, isFrom } from './built-in-call.ts';
import {
  addBin,
  askedVersions,
  mustToolRegistry,
  progressOf,
  reportCache,
} from './tool-request.ts';

const VERSION_TIMEOUT_MS = 20_000;

/**
 * actions/setup-go: the version asked for, found on this machine or got from the module proxy. Programs
 * that it installs go to GOPATH, so that its own folder is nobody's to change and serves all jobs; a job
 * of a fork, which sees none of the user's folders, gets a copy. Errors: NOT_FOUND.
 */
export async function runSetupGo(call: BuiltInCall): Promise<boolean> {
  const { given, run, frame } = call;
  refuseOtherArchitecture(inputOf(given, 'architecture'));
  const inputs = { version: 'go-version', file: 'go-version-file', usual: [] };
  const { versions, from } = await askedVersions(call, 'go', inputs);
  reportCache(call, 'cache');
  const [asked] = versions;
  if (asked === undefined) {
    run.log.warn('No version is asked for: steps use the Go that they find on this host');
    return true;
  }
  const registry = mustToolRegistry(call);
  const needsList = asked.trim() === 'oldstable';
  const releases = needsList ? newestFirst(await registry.go.available(run.signal)) : [];
  const wish = goWish(asked, releases);
  const isLatestWanted = flagOf(call, 'check-latest');
  const tool = await findOrGet(registry.go, { wish, isLatestWanted, ...progressOf(run) });
  const { isolation } = frame.job.request;
  const dir =
    isolation === undefined
      ? tool.prefix
      : await layForJob(frame.job, `go-${tool.version}`, (making) => copyTree(tool.prefix, making));
  const home = isolation?.home ?? frame.job.baseVariables['HOME'] ?? homedir();
  run.environment.addPath(join(run.environment.values['GOPATH'] ?? join(home, 'go'), 'bin'));
  addBin(call, dir);
  // Else a go.mod that wants a newer one would get it silently; up to version 5 the action lets it.
  if (isFrom(call.definition.uses, 6)) run.environment.set('GOTOOLCHAIN', 'local');
  run.log.say(`Go ${tool.version} (${tool.source}), for ${asked} of ${from}`);
  run.outputs.set('go-version', tool.version);
  if (isolation === undefined) await warnOfSettings(call, tool);
  return true;
}

/** Steps get GOFLAGS and go/env of the host, which may hold what an older Go does not know. */
async function warnOfSettings(
  { frame, run, step }: BuiltInCall,
  { program, version }: ToolAtHand,
): Promise<void> {
  const { job } = frame;
  // No go.mod of the project may have another one got.
  const own = { GOTOOLCHAIN: 'local', GOWORK: 'off' };
  const env = processEnvironment(job, run.environment, step.env, step.github, own);
  const options = { cwd: tmpdir(), env, timeoutMs: VERSION_TIMEOUT_MS, signal: run.signal };
  const result = await runClient(program, ['version'], options);
  if (result.code === 0) return;
  const why = failureOf(result, 'first', (text) => job.masker.mask(text));
  run.log.warn(
    `Go ${version} does not run with the settings of this host (GOFLAGS, go env -w), which steps have: ${why}`,
  );
}
