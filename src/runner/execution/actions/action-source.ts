import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { cp, readFile } from 'node:fs/promises';
import { join, normalize, relative, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../../../shared/app-error.ts';
import { readApart } from '../../host/isolation/open-apart.ts';
import { readAction } from '../../language/read-action.ts';
import type { JobIsolation } from '../../model/isolation.ts';
import type { ActionDefinition } from '../../model/workflow.ts';
import { ifPresent } from '../../storage/file-errors.ts';
import type { Frame, JobState } from '../state/job-state.ts';
import type { LoadedAction } from '../state/loaded-action.ts';

/** What a `uses:` names. */
export type ActionReference =
  | { readonly kind: 'image'; readonly image: string }
  | { readonly kind: 'local'; readonly path: string; readonly isOwnRepository: boolean }
  | {
      readonly kind: 'remote';
      /** `owner/repo`. */
      readonly repository: string;
      /** Within the repository, '' for its root. */
      readonly path: string;
      readonly ref: string;
    };

const IMAGE_PREFIX = 'docker://';
const FILE_NAMES: readonly string[] = ['action.yml', 'action.yaml'];
const REMOTE = /^([\w.-]+)\/([\w.-]+)((?:\/[^@]+)?)@(.+)$/;
const FILE_CHARACTERS_MAX = 512 * 1024;

/** Errors: INVALID_WORKFLOW for a text that names no action. */
export function parseUses(uses: string): ActionReference {
  if (uses.startsWith(IMAGE_PREFIX))
    return { kind: 'image', image: uses.slice(IMAGE_PREFIX.length) };
  if (uses.startsWith('./') || uses === '.') {
    return { kind: 'local', path: uses, isOwnRepository: false };
  }
  if (uses.startsWith('$/')) return { kind: 'local', path: uses.slice(2), isOwnRepository: true };
  const [, owner = '', repo = '', path = '', ref = ''] = REMOTE.exec(uses) ?? [];
  const parts = [owner, repo, ...path.split('/'), ...ref.split('/')];
  if (owner === '' || parts.includes('..') || parts.includes('.')) {
    const text = `'${uses}' names no action: it is ./path, $/path, docker://image or owner/repo[/path]@ref`;
    throw new AppError('INVALID_WORKFLOW', text, { field: 'uses' });
  }
  return {
    kind: 'remote',
    repository: `${owner}/${repo}`,
    path: path.replace(/^\/|\/$/g, ''),
    ref,
  };
}

/** Where the files of a remote action have to lie. */
export function cachedActionDir(
  job: JobState,
  reference: { readonly repository: string; readonly ref: string },
): string {
  return join(job.folders.actions, `${reference.repository}@${reference.ref}`);
}

/** Whether a remote action is in the folder of actions. */
export function isCached(
  job: JobState,
  reference: { readonly repository: string; readonly ref: string },
): boolean {
  return existsSync(cachedActionDir(job, reference));
}

/**
 * Reads the action of a reference. Remote ones are kept for the job.
 * Errors: NOT_FOUND, which says where the files belong; INVALID_WORKFLOW for a broken action.yml.
 */
export async function loadAction(
  frame: Frame,
  reference: Exclude<ActionReference, { kind: 'image' }>,
): Promise<LoadedAction> {
  return reference.kind === 'local'
    ? await loadLocal(frame, reference)
    : await loadRemote(frame.job, reference);
}

async function loadLocal(
  frame: Frame,
  reference: Extract<ActionReference, { kind: 'local' }>,
): Promise<LoadedAction> {
  const { workspace } = frame.job.folders;
  const root = reference.isOwnRepository ? frame.repositoryRoot : workspace;
  const dir = resolve(root, reference.path);
  const { isolation } = frame.job.request;
  // What the runner put there for the job; all else may be anything.
  const isCopy = dir.startsWith(join(frame.job.request.jobDir, 'actions') + sep);
  const definition = await readDefinition(dir, reference.path, isCopy ? undefined : isolation);
  if (definition === undefined) {
    const text = `Can't find 'action.yml', 'action.yaml' or 'Dockerfile' under '${reference.path}'. Did you forget to run actions/checkout before running your local action?`;
    throw new AppError('NOT_FOUND', text, { field: 'uses' });
  }
  return { dir, definition, isLocal: true, repository: '', ref: '', root };
}

async function loadRemote(
  job: JobState,
  reference: Extract<ActionReference, { kind: 'remote' }>,
): Promise<LoadedAction> {
  const { repository, path, ref } = reference;
  const key = `${repository}${path === '' ? '' : `/${path}`}@${ref}`;
  const known = job.loadedActions.get(key);
  if (known !== undefined) return known;
  const root = cachedActionDir(job, reference);
  const dir = normalize(join(root, path));
  const shown = `.runner/actions/${repository}@${ref}`;
  if (!root.startsWith(job.folders.actions + sep)) {
    throw new AppError('INVALID_WORKFLOW', `'${key}' names no action`, { field: 'uses' });
  }
  const definition = await readDefinition(dir, key);
  if (definition === undefined) {
    const text = isCached(job, reference)
      ? `Action '${key}' has no action.yml, action.yaml or Dockerfile in ${shown}`
      : `Action '${key}' is not on this host, which downloads none: put its repository into ${shown} of the project`;
    throw new AppError('NOT_FOUND', text, { field: 'uses' });
  }
  const place = await placeFor(job, root);
  const loaded = {
    dir: normalize(join(place, path)),
    definition,
    isLocal: false,
    repository,
    ref,
    root: place,
  };
  job.loadedActions.set(key, loaded);
  return loaded;
}

/** Where a job finds the files of a remote action: one that is kept apart cannot enter the project. */
async function placeFor(job: JobState, root: string): Promise<string> {
  if (job.request.isolation === undefined) return root;
  const place = join(job.request.jobDir, 'actions', relative(job.folders.actions, root));
  await cp(root, place, { recursive: true });
  await promisify(execFile)('/bin/chmod', ['-R', 'a+rX', join(job.request.jobDir, 'actions')]);
  return place;
}

/** `isolation`: of a job that chose the files itself. */
async function readDefinition(
  dir: string,
  shown: string,
  isolation?: JobIsolation,
): Promise<ActionDefinition | undefined> {
  for (const name of FILE_NAMES) {
    const path = join(dir, name);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) continue;
    const text =
      isolation === undefined
        ? ((await ifPresent(readFile(path, 'utf8'))) ?? '')
        : readApart(path, isolation).toString('utf8');
    return parseDefinition(text, `${shown}/${name}`);
  }
  if (!existsSync(join(dir, 'Dockerfile'))) return undefined;
  return {
    name: shown,
    inputs: new Map(),
    outputs: new Map(),
    runs: { kind: 'docker', image: 'Dockerfile' },
  };
}

function parseDefinition(text: string, shown: string): ActionDefinition {
  if (text.length > FILE_CHARACTERS_MAX) {
    throw new AppError(
      'INVALID_WORKFLOW',
      `${shown} is larger than ${FILE_CHARACTERS_MAX} characters`,
    );
  }
  const { action, problems } = readAction(text, shown);
  if (action !== undefined) return action;
  const [first] = problems;
  const place = first === undefined ? '' : ` (line ${first.line}, column ${first.column})`;
  throw new AppError('INVALID_WORKFLOW', `${shown}${place}: ${first?.message ?? 'not an action'}`);
}
