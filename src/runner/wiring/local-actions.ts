import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { LocalContext } from '../cli/local-runner.ts';
import type { ActionLink, ActionNeeds } from '../cli/runner-link.ts';
import { type ActionLibrary, usesOfFile } from '../host/actions/action-library.ts';
import { createWorkflowCatalog } from '../host/project/workflow-catalog.ts';
import type { ActionUses, WorkflowFile } from '../model/ports.ts';
import { STATE_DIR } from '../storage/endpoint-file.ts';
import { prepareStateDir } from '../storage/run-store.ts';
import { openActions } from './wiring-basis.ts';

/** The actions of a workspace. Errors: those of preparing its state folder. */
export async function openLocalActions({ settings, workspace }: LocalContext): Promise<ActionLink> {
  const stateDir = join(workspace, STATE_DIR);
  await prepareStateDir(stateDir);
  return new LocalActions(openActions(settings, stateDir), workspace);
}

class LocalActions implements ActionLink {
  readonly #library: ActionLibrary;
  readonly #workspace: string;

  constructor(library: ActionLibrary, workspace: string) {
    this.#library = library;
    this.#workspace = workspace;
  }

  needs(workflow: string | undefined): Promise<ActionNeeds> {
    return this.#collect(workflow, 'none');
  }

  fetch(workflow: string | undefined, isUpdate: boolean): Promise<ActionNeeds> {
    return this.#collect(workflow, isUpdate ? 'all' : 'missing');
  }

  names(): readonly string[] {
    return this.#library.list().map(({ name }) => name);
  }

  async prune(): Promise<readonly string[]> {
    const { actions } = await this.#collect(undefined, 'none');
    return await this.#library.prune(new Set(actions.map(({ name }) => name)));
  }

  async #collect(
    workflow: string | undefined,
    fetching: 'none' | 'missing' | 'all',
  ): Promise<ActionNeeds> {
    const catalog = createWorkflowCatalog(this.#workspace);
    const files = workflow === undefined ? await catalog.list() : [await catalog.find(workflow)];
    const needed = await Promise.all(files.map((file) => this.#usesOf(file)));
    return await this.#library.collect(needed, this.#workspace, fetching);
  }

  /** As it lies there: a file whose called workflows are not here yet cannot be read as a whole. */
  async #usesOf({ filePath }: WorkflowFile): Promise<ActionUses> {
    return usesOfFile(await readFile(filePath, 'utf8'), relative(this.#workspace, filePath));
  }
}
