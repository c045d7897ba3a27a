import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../../../shared/app-error.ts';
import type { JobIsolation } from '../../model/isolation.ts';
import type { ArtifactStore } from '../../model/ports.ts';
import type { Artifact } from '../../model/run.ts';
import { mustStayWithin } from '../../storage/contained-file.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, flagOf, isFrom, pathOf } from './built-in-call.ts';

/** The first major version that makes no folder for the only artifact, however it was chosen. */
const PLAIN_FROM = 5;
/** The first major version that has the inputs `skip-decompress` and `digest-mismatch`. */
const UNPACK_FROM = 8;

/** actions/download-artifact from version 4 on. Errors: those of ArtifactStore.extract, ARTIFACT_NOT_FOUND. */
export async function runDownloadArtifact(call: BuiltInCall): Promise<boolean> {
  const { run, given, frame, definition } = call;
  const store = frame.job.dependencies.artifacts;
  const { isolation, runId: ownRun, idOfRun } = frame.job.request;
  const wanted = inputOf(given, 'run-id', ownRun);
  const runId = idOfRun?.(wanted) ?? wanted;
  const target = pathOf(call, inputOf(given, 'path', '.'));
  // A job that is kept apart unpacks by itself, where it may.
  if (isolation === undefined) mustStayWithin(frame.job.folders.workspace, target);
  const name = inputOf(given, 'name');
  const artifacts = choose(store.list(runId), call);
  const isPlain = artifacts.length === 1 && isFrom(definition.uses, PLAIN_FROM);
  const isSingle = name !== '' || isPlain;
  const isMerging = flagOf(call, 'merge-multiple');
  const { how, onDamage } = unpackingOf(call);
  for (const artifact of artifacts) {
    const folder = isSingle || isMerging ? target : join(target, artifact.name);
    let isWhole = true;
    const extract = async (place: string): Promise<void> => {
      isWhole = await store.extract(artifact, place, how);
    };
    if (isolation === undefined) {
      mustStayWithin(frame.job.folders.workspace, folder);
      await extract(folder);
    } else {
      await extractApart(frame.job.request.jobDir, isolation, folder, extract);
    }
    if (!isWhole) onDamage(`The artifact '${artifact.name}' is not what was uploaded`);
    run.log.say(`Artifact ${artifact.name}: ${artifact.size} bytes unpacked`);
  }
  if (artifacts.length === 0) run.log.say(nothingFor(inputOf(given, 'pattern'), store.list(runId)));
  run.outputs.set('download-path', target);
  return true;
}

/** Inputs of version 8; earlier ones do not know them. Errors: INVALID_VALUE. */
function unpackingOf(call: BuiltInCall): {
  readonly how: NonNullable<Parameters<ArtifactStore['extract']>[2]>;
  readonly onDamage: (text: string) => void;
} {
  const { log } = call.run;
  if (!isFrom(call.definition.uses, UNPACK_FROM)) return { how: {}, onDamage: () => {} };
  const isPacked = flagOf(call, 'skip-decompress');
  const mismatch = inputOf(call.given, 'digest-mismatch', 'error');
  const reporters = {
    ignore: () => {},
    info: (text: string) => log.say(text),
    warn: (text: string) => log.warn(text),
    error: (text: string) => log.error(text),
  };
  if (!Object.hasOwn(reporters, mismatch)) {
    const text = 'digest-mismatch: must be ignore, info, warn or error';
    throw new AppError('INVALID_VALUE', text, { field: 'digest-mismatch' });
  }
  const how = { isPacked, isDamageAccepted: mismatch !== 'error' };
  return { how, onDamage: reporters[mismatch as keyof typeof reporters] };
}

/** Unpacked where only the runner writes, then copied by the job itself: its folders may hold links. */
async function extractApart(
  jobDir: string,
  isolation: JobIsolation,
  target: string,
  extract: (place: string) => Promise<void>,
): Promise<void> {
  const place = await mkdtemp(join(jobDir, 'download-'));
  await extract(place);
  await promisify(execFile)('/bin/chmod', ['-R', 'a+rX', place]);
  const script = 'mkdir -p -- "$2" && cp -R -- "$1/." "$2/"';
  const env = { PATH: '/usr/bin:/bin' };
  const args = ['-c', script, 'sh', place, target];
  const start = isolation.wrap({ file: '/bin/sh', args, cwd: isolation.home, env });
  await promisify(execFile)(start.file, [...start.args], { cwd: start.cwd, env: start.env });
  await rm(place, { recursive: true, force: true });
}

function choose(all: readonly Artifact[], { given }: BuiltInCall): readonly Artifact[] {
  const name = inputOf(given, 'name');
  const ids = inputOf(given, 'artifact-ids');
  if (name !== '') {
    const found = all.filter((artifact) => artifact.name === name);
    if (found.length === 0) throw notFound(`Artifact not found for name: ${name}`);
    return found;
  }
  if (ids !== '') {
    const wanted = new Set(ids.split(',').map((id) => id.trim()));
    const found = all.filter((artifact) => wanted.has(artifact.id));
    if (found.length === 0) throw notFound('None of the provided artifact IDs were found');
    return found;
  }
  const pattern = inputOf(given, 'pattern');
  if (pattern === '') return all;
  const expression = mustPattern(pattern);
  return all.filter((artifact) => expression.test(artifact.name));
}

function nothingFor(pattern: string, all: readonly Artifact[]): string {
  if (pattern === '' || all.length === 0) return 'There are no artifacts to download';
  return `No artifact matches the pattern '${pattern}': there ${all.length === 1 ? 'is one' : `are ${all.length}`}`;
}

function notFound(text: string): AppError {
  return new AppError('ARTIFACT_NOT_FOUND', `Unable to download artifact(s): ${text}`);
}

function mustPattern(pattern: string): RegExp {
  try {
    return namePattern(pattern);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const text = `pattern: '${pattern}' is no pattern: a range in it has its ends the wrong way round`;
    throw new AppError('INVALID_VALUE', text, { field: 'pattern' }, error);
  }
}

/** A glob of names, which hold no `/`: `*`, `?`, `[…]` and `{a,b}`. A dot that a name begins with is matched by a dot alone. */
function namePattern(pattern: string): RegExp {
  return new RegExp(`^${sourceOf(pattern, true)}$`, 's');
}

function sourceOf(pattern: string, isStart: boolean): string {
  const parts = /\*+|\?|\[[^\]]+\]|\{[^{}]+\}|[^*?[{]|[[{]/g;
  const source = pattern.replaceAll(parts, (part, offset: number) => {
    if (part.startsWith('*')) return '.*';
    if (part === '?') return '.';
    if (part.length > 1 && part.startsWith('[')) return part.replace(/^\[!/, '[^');
    if (part.length > 1 && part.startsWith('{')) {
      const choices = part.slice(1, -1).split(',');
      return `(?:${choices.map((choice) => sourceOf(choice, isStart && offset === 0)).join('|')})`;
    }
    return part.replace(/[\\^$.|?*+()[\]{}]/, String.raw`\$&`);
  });
  return isStart && /^(?:[*?]|\[[^\]])/.test(pattern) ? `(?!\\.)${source}` : source;
}
