import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A project in a temporary folder. */
export type RunnerProject = AsyncDisposable & {
  readonly dir: string;
  /** Writes a file; the path is relative to the project. */
  readonly write: (path: string, text: string) => Promise<void>;
  readonly workflow: (fileName: string, text: string) => Promise<void>;
};

/** Makes a project with these workflows, by file name. */
export async function createRunnerProject(
  workflows: Readonly<Record<string, string>> = {},
): Promise<RunnerProject> {
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-runner-'));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  };
  const workflow = (fileName: string, text: string): Promise<void> =>
    write(join('.github', 'workflows', fileName), text);
  for (const [fileName, text] of Object.entries(workflows)) await workflow(fileName, text);
  return {
    dir,
    write,
    workflow,
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true, maxRetries: 5 }),
  };
}
