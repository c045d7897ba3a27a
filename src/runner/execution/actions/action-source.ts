import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { cp, readFile } from 'node:fs/promises';
import { join, normalize, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../../../shared/app-error.ts';
import type { FoundAction } from '../../host/actions/action-library.ts';
import { readApart } from '../../host/isolation/open-apart.ts';
import { copyTree } from '../../host/tools/run-client.ts';
import type { ActionReference, RemoteReference } from '../../language/action-reference.ts';
import { readAction } from '../../language/read-action.ts';
import type { JobIsolation } from '../../model/isolation.ts';
import type { ActionDefinition } from '../../model/workflow.ts';
import { ifPresent } from '../../storage/file-errors.ts';
import type { JobState, LoadedAction, StepFrame } from '../state/job-state.ts';
import { layForJob } from '../state/job-tool-folders.ts';

const FILE_NAMES: readonly string[] = ['action.yml', 'action.yaml'];
const FILE_CHARACTERS_MAX = 512 * 1024;

/** Where the files of a remote action are; looked up once for each job. Errors: those of ActionLibrary.find. */
export async function findAction(
  job: JobState,
  reference: Pick<RemoteReference, 'repository' | 'ref'>,
): Promise<FoundAction | undefined> {
  const name = `${reference.repository}@${reference.ref}`;
  let found = job.foundActions.get(name);
  if (found === undefined) {
    found = job.actions.find(reference);
    job.foundActions.set(name, found);
  }
  return await found;
}

/**
 * Reads the action of a reference. Remote ones are kept for the job.
 * Errors: NOT_FOUND, which says where the files belong; INVALID_WORKFLOW for a broken action.yml.
 */
export async function loadAction(
  frame: StepFrame,
  reference: Exclude<ActionReference, { kind: 'image' }>,
): Promise<LoadedAction> {
  return reference.kind === 'local'
    ? await loadLocal(frame, reference)
    : await loadRemote(frame.job, reference);
}

async function loadLocal(
  frame: StepFrame,
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
  const shown = `.runner/actions/${repository}@${ref}`;
  const found = await findAction(job, reference);
  if (found === undefined) {
    const text = `Action '${key}' is not here: \`gatehouse-runner actions fetch\` gets it, or put its repository into ${shown} of the project`;
    throw new AppError('NOT_FOUND', text, { field: 'uses' });
  }
  const definition = await readDefinition(normalize(join(found.root, path)), key);
  if (definition === undefined) {
    const text = `Action '${key}' has no action.yml, action.yaml or Dockerfile in ${shown}`;
    throw new AppError('NOT_FOUND', text, { field: 'uses' });
  }
  const place = await placeFor(job, `${repository}@${ref}`, found);
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

/**
 * Where a job finds the files of a remote action. One that is kept apart cannot enter the project; of what
 * git fetched every job has a copy of its own, so that none changes it for those after it.
 */
async function placeFor(job: JobState, name: string, found: FoundAction): Promise<string> {
  if (job.request.isolation !== undefined) {
    const place = join(job.request.jobDir, 'actions', name);
    await cp(found.root, place, { recursive: true });
    await promisify(execFile)('/bin/chmod', ['-R', 'a+rX', join(job.request.jobDir, 'actions')]);
    return place;
  }
  if (found.source !== 'fetched') return found.root;
  const short = createHash('sha256').update(name).digest('hex').slice(0, 16);
  return await layForJob(job, `action-${short}`, (making) => copyTree(found.root, making));
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
