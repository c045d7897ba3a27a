import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { inputOf } from '../steps/step-input.ts';
import type { BuiltInCall } from './built-in-call.ts';

/** actions/setup-node: the node of the host is used as it is; says which, and that it was not chosen. */
export async function runSetupNode(call: BuiltInCall): Promise<boolean> {
  const { frame, run, given } = call;
  const path = run.environment.pathInFrontOf(frame.job.baseVariables['PATH']);
  const program = frame.job.finder.find('node', path) ?? process.execPath;
  const version = await versionOf(call, program, path);
  const wanted = inputOf(given, 'node-version');
  const asked = wanted === '' ? '' : ` (asked for: ${wanted})`;
  run.log.warn(`This runner installs no node: steps use ${version} of this host${asked}`);
  run.outputs.set('node-version', version);
  run.outputs.set('cache-hit', 'false');
  return true;
}

/** A program that a job of a fork may have chosen is started as that job starts it. */
async function versionOf({ frame }: BuiltInCall, program: string, path: string): Promise<string> {
  const { isolation } = frame.job.request;
  const { folders, baseVariables } = frame.job;
  // A step may have put another program of that name in front: it gets what steps get.
  const env = { ...baseVariables, PATH: path };
  const start = { file: program, args: ['--version'], cwd: folders.workspace, env };
  const { file, args, ...options } = isolation?.wrap(start) ?? start;
  const { stdout } = await promisify(execFile)(file, [...args], options);
  return stdout.trim();
}
