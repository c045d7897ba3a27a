import { ToolShelf, toolsDirOf } from '../host/tools/tool-shelf.ts';
import type { Closings } from './closings.ts';
import type { PartsBasis } from './parts-basis.ts';

/** The tools of jobs; what killed runners left of theirs is removed. */
export async function openTools(
  { settings, environment }: PartsBasis,
  closings: Closings,
): Promise<ToolShelf> {
  const root = settings.toolsDir ?? toolsDirOf(environment);
  const seen =
    settings.stepPath === undefined ? environment : { ...environment, PATH: settings.stepPath };
  const tools = new ToolShelf({ environment: seen, root, mayInstall: settings.installTools });
  await tools.jobs.tidy();
  closings.push(() => tools.jobs.close());
  return tools;
}
