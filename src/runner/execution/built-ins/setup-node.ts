import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { inputOf } from '../steps/step-input.ts';
import type { BuiltInCall } from './built-in-call.ts';

/** actions/setup-node: the node of the host is used as it is; says which, and that it was not chosen. */
export async function runSetupNode({ frame, run, given }: BuiltInCall): Promise<boolean> {
  const path = run.environment.pathInFrontOf(frame.job.baseVariables['PATH']);
  const program = frame.job.finder.find('node', path) ?? process.execPath;
  // A step may have put another program of that name in front: it gets what steps get.
  const env = { ...frame.job.baseVariables, PATH: path };
  const { stdout } = await promisify(execFile)(program, ['--version'], { env });
  const version = stdout.trim();
  const wanted = inputOf(given, 'node-version');
  const asked = wanted === '' ? '' : ` (asked for: ${wanted})`;
  run.log.warn(`This runner installs no node: steps use ${version} of this host${asked}`);
  run.outputs.set('node-version', version);
  run.outputs.set('cache-hit', 'false');
  return true;
}
