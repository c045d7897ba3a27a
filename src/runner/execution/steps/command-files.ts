import {
  closeSync,
  constants,
  fchownSync,
  lstatSync,
  openSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { readApart } from '../../host/isolation/open-apart.ts';
import type { JobIsolation } from '../../model/isolation.ts';
import type { TextMask } from '../../model/ports.ts';
import {
  decodeCommandFile,
  maskSummary,
  parseEnvFile,
  parsePairs,
  parsePathFile,
  readCommandFile,
} from '../../step-output/file-commands.ts';
import type { JobState } from '../state/job-state.ts';
import type { StepRun } from '../state/step-run.ts';

type CommandFileKind = 'env' | 'output' | 'path' | 'state' | 'summary';

/** The files through which one step notifies the runner things: fresh ones for each step. */
export type CommandFiles = {
  readonly paths: Readonly<Record<CommandFileKind, string>>;
  /** GITHUB_ENV and its like. */
  readonly variables: Readonly<Record<string, string>>;
};

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
const NEW_FILE = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

let counter = 0;

/**
 * Makes empty files, since a step may append to them or read them first. Cost: five opens.
 * Errors: INVALID_VALUE, and those of the file system.
 */
export function createCommandFiles(job: JobState): CommandFiles {
  counter += 1;
  const { isolation } = job.request;
  const make = (kind: CommandFileKind): string => {
    const path = join(job.folders.commands, `${kind}_${counter}`);
    // An earlier step may have guessed the name and put a link there.
    rmSync(path, { force: true });
    const fd = openSync(path, NEW_FILE, 0o600);
    if (isolation !== undefined) fchownSync(fd, isolation.uid, isolation.uid);
    closeSync(fd);
    return path;
  };
  // …or in place of the folder.
  if (realpathSync(job.folders.commands) !== job.realFolders[0]) {
    throw new AppError('INVALID_VALUE', 'The folder of the command files was replaced');
  }
  const paths = {
    env: make('env'),
    output: make('output'),
    path: make('path'),
    state: make('state'),
    summary: make('summary'),
  };
  return {
    paths,
    variables: {
      GITHUB_ENV: paths.env,
      GITHUB_OUTPUT: paths.output,
      GITHUB_PATH: paths.path,
      GITHUB_STATE: paths.state,
      GITHUB_STEP_SUMMARY: paths.summary,
    },
  };
}

/**
 * Takes in what the step wrote. A file that cannot be read is an error annotation.
 * Returns false when one was: the step fails. Cost: five stats, and a read of each file that is not empty.
 */
export async function takeCommandFiles(
  job: JobState,
  run: StepRun,
  files: CommandFiles,
): Promise<boolean> {
  let isFine = true;
  const { isolation } = job.request;
  const mask: TextMask = (text) => job.masker.mask(text);
  const take = async (kind: CommandFileKind, use: (text: string) => void): Promise<void> => {
    const path = files.paths[kind];
    try {
      if ((lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
      use(
        isolation === undefined
          ? await readCommandFile(path, job.realFolders)
          : readApartFile(path, isolation),
      );
    } catch (error) {
      // A summary is for people: without it the step is as good as with it.
      if (kind !== 'summary') isFine = false;
      const text = error instanceof AppError ? error.message : 'it cannot be read';
      run.log.error(`Unable to process file command '${kind}': ${text}`);
    }
  };
  await take('env', (text) => setVariables(run, text, mask));
  await take('path', (text) => {
    for (const folder of parsePathFile(text)) run.environment.addPath(folder);
  });
  await take('output', (text) => {
    for (const [name, value] of parsePairs(text, mask)) run.outputs.set(name, value);
  });
  await take('state', (text) => {
    for (const [name, value] of parsePairs(text, mask)) run.state.set(name, value);
  });
  await take('summary', (text) => run.log.addSummary(maskSummary(text, job.masker)));
  return isFine;
}

function readApartFile(path: string, isolation: JobIsolation): string {
  return decodeCommandFile(readApart(path, isolation));
}

function setVariables(run: StepRun, text: string, mask: TextMask): void {
  const { values, refused, suspicious } = parseEnvFile(text, mask);
  for (const name of refused) {
    run.log.error(`Can't store ${name} output parameter using '$GITHUB_ENV' command.`);
  }
  for (const name of suspicious) {
    run.log.warn(`GITHUB_ENV sets ${name}: it loads code into the programs of later steps`);
  }
  for (const [name, value] of values) run.environment.set(name, value);
}
