import { removeFormerJobTools } from '../host/tools/former-job-tools.ts';
import { ToolShelf, toolsDirOf } from '../host/tools/tool-shelf.ts';
import type { PartsBasis } from './parts-basis.ts';

/** The tools of jobs; what killed runners of older versions left of theirs is removed. */
export async function openTools({ settings, environment }: PartsBasis): Promise<ToolShelf> {
  const root = settings.toolsDir ?? toolsDirOf(environment);
  const seen =
    settings.stepPath === undefined ? environment : { ...environment, PATH: settings.stepPath };
  await removeFormerJobTools(root);
  return new ToolShelf({ environment: seen, root, mayInstall: settings.installTools });
}
