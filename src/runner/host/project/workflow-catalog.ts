import { statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { meant } from '../../../shared/text/nearest-name.ts';
import { WORKFLOW_FILES_MAX } from '../../language/limits.ts';
import { readWorkflow } from '../../language/read-workflow.ts';
import type { WorkflowCatalog, WorkflowFile } from '../../model/ports.ts';
import type { FileProblem, WorkflowSource } from '../../model/workflow.ts';
import {
  type FileContent,
  createCalledFileLoader,
  readProjectFile,
  stampOfProjectFile,
} from './project-files.ts';

const FOLDER = join('.github', 'workflows');

/** A file that was read, with all files that it was read from. */
type CatalogEntry = {
  readonly file: WorkflowFile;
  readonly stamps: ReadonlyMap<string, string>;
};

/**
 * The workflows of a project. Each call looks at the files; those that did not change since, nor those
 * that they call, are not read again. Links out of the project and files over 512 Ki characters are
 * listed with a problem. `remotesDir`: the project whose `.runner/actions` has the workflows of other
 * repositories, when it is another folder.
 */
export function createWorkflowCatalog(
  projectDir: string,
  remotesDir: string = projectDir,
): WorkflowCatalog {
  return new FileCatalog(resolve(projectDir), resolve(remotesDir));
}

class FileCatalog implements WorkflowCatalog {
  readonly #projectDir: string;
  readonly #remotesDir: string;
  #cache = new Map<string, CatalogEntry>();

  constructor(projectDir: string, remotesDir: string) {
    this.#projectDir = projectDir;
    this.#remotesDir = remotesDir;
  }

  async list(): Promise<readonly WorkflowFile[]> {
    const names = await this.#fileNames();
    const next = new Map<string, CatalogEntry>();
    for (const name of names) {
      next.set(name, await this.#entry(name));
    }
    this.#cache = next;
    return [...next.values()].map(({ file }) => file);
  }

  async find(name: string): Promise<WorkflowFile> {
    if (/[/\\\0]|\.\./.test(name)) {
      throw new AppError('INVALID_NAME', 'A workflow is named without its folder', {
        field: 'workflow',
      });
    }
    const files = await this.list();
    for (const normalize of [(text: string) => text, (text: string) => text.toLowerCase()]) {
      for (const keyOf of KEYS) {
        const matches = files.filter((file) => normalize(keyOf(file)) === normalize(name));
        const [match] = matches;
        if (matches.length > 1) {
          throw new AppError('AMBIGUOUS_WORKFLOW', `Several workflows are called '${name}'`, {
            paths: matches.map(({ filePath }) => filePath).join('\n'),
          });
        }
        if (match !== undefined) {
          return match;
        }
      }
    }
    if (files.length === 0) throw noWorkflows(this.#projectDir);
    const names = files.flatMap((file) => KEYS.map((keyOf) => keyOf(file)));
    const near = meant(name, names);
    throw new AppError('WORKFLOW_NOT_FOUND', `There is no workflow '${name}'${near}`);
  }

  async #fileNames(): Promise<readonly string[]> {
    const entries = await readdir(join(this.#projectDir, FOLDER)).catch(() => []);
    const names = entries.filter((name) => /\.ya?ml$/i.test(name)).toSorted();
    if (names.length > WORKFLOW_FILES_MAX) {
      throw new AppError(
        'RESULT_TOO_LARGE',
        `More than ${WORKFLOW_FILES_MAX} workflow files in .github/workflows`,
      );
    }
    return names;
  }

  async #entry(fileName: string): Promise<CatalogEntry> {
    const known = this.#cache.get(fileName);
    return known !== undefined && (await this.#isFresh(known)) ? known : await this.#read(fileName);
  }

  async #isFresh({ stamps }: CatalogEntry): Promise<boolean> {
    for (const [path, stamp] of stamps) {
      if ((await stampOfProjectFile(this.#projectDir, path)) !== stamp) {
        return false;
      }
    }
    return true;
  }

  async #read(fileName: string): Promise<CatalogEntry> {
    const path = join(FOLDER, fileName);
    const filePath = join(this.#projectDir, path);
    const content = await readProjectFile(this.#projectDir, path);
    const stamps = new Map([[path, content.stamp]]);
    if (content.kind !== 'text') {
      const problems = [problemOf(content.kind)];
      return { file: { fileName, filePath, name: fileName, problems }, stamps };
    }
    const own = { text: content.text, fileName, path: `.github/workflows/${fileName}` };
    const read = new Map<string, WorkflowSource>([[own.path, own]]);
    const folders = { own: this.#projectDir, remote: this.#remotesDir };
    const load = createCalledFileLoader(folders, (file, stamp) => stamps.set(file, stamp));
    const { workflow, document, problems, missing } = await readWorkflow(
      own,
      async (uses, from) => {
        const called = await load(uses, from);
        // As the reader does: the first text counts, should the file change meanwhile.
        if (called !== undefined && !read.has(called.path)) read.set(called.path, called);
        return called;
      },
    );
    const name = workflow?.name ?? nameIn(document) ?? fileName;
    const sources = workflow === undefined ? undefined : [...read.values()];
    const file = { fileName, filePath, name, document, workflow, sources, problems, missing };
    return { file, stamps };
  }
}

/** Says where no workflow was found, and which folder above has some. */
export function noWorkflows(projectDir: string): AppError {
  const above = folderWithWorkflows(dirname(projectDir));
  const hint = above === undefined ? '' : `; ${above} has some: \`--workspace ${above}\``;
  const text = `There are no workflows in ${join(projectDir, FOLDER)}${hint}`;
  return new AppError('WORKFLOW_NOT_FOUND', text);
}

function folderWithWorkflows(folder: string): string | undefined {
  if (statSync(join(folder, FOLDER), { throwIfNoEntry: false })?.isDirectory() === true) {
    return folder;
  }
  const above = dirname(folder);
  return above === folder ? undefined : folderWithWorkflows(above);
}

const KEYS: readonly ((file: WorkflowFile) => string)[] = [
  ({ fileName }) => fileName,
  ({ fileName }) => fileName.replace(/\.ya?ml$/i, ''),
  ({ name }) => name,
];

function problemOf(kind: Exclude<FileContent['kind'], 'text'>): FileProblem {
  const message = {
    missing: 'The file cannot be read',
    outside: 'The file is a link out of the project',
    notAFile: 'This is no file',
    tooLarge: 'The file is too large',
  }[kind];
  return { line: 1, column: 1, message };
}

function nameIn(document: unknown): string | undefined {
  const name =
    typeof document === 'object' && document !== null && 'name' in document
      ? document.name
      : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}
