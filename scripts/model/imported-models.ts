import { peerReadings } from '../../src/model/cel-readings.ts';
import type { NamespaceModel } from '../../src/model/model-shape.ts';
import { inspectModel } from '../../src/model/namespace-model.ts';
import { OPENFGA_COMMENT } from '../../src/store/sql/openfga-stores.ts';
import { callInstance, type Instance, instancesOf } from '../instances.ts';

const PAGE_SIZE = 1_000;

type VersionJson = { readonly version: string; readonly comment: string };

/**
 * What the conditions of a model that was imported decide otherwise than where it came from. Models that this release
 * imports have names for that, and nothing is found in them. O(expressions).
 */
export function readingsOfImported(
  model: NamespaceModel,
): readonly { readonly path: string; readonly message: string }[] {
  return [...model.conditions.values()].flatMap(({ name, parameters, expression }) =>
    peerReadings(expression, parameters).map((reading) => ({
      path: `$.conditions.${name}.expression`,
      message: `${reading.line}:${reading.column}: ${reading.name} is read otherwise: ${reading.difference} (import the model again)`,
    })),
  );
}

/**
 * The same, a line each, of the models that a service has: those in force, and all versions that came through OpenFGA's API.
 * Of `projects`, or of all. Errors: throws with what the service answered.
 */
export async function storedModelLines(
  projects: readonly string[],
  url: string | undefined,
): Promise<readonly string[]> {
  const [instance] = instancesOf(url === undefined ? undefined : [url]);
  if (instance === undefined) return [];
  const lines: string[] = [];
  const asked = projects.length > 0 ? projects : await projectsOf(instance);
  for (const project of asked) lines.push(...(await linesOfProject(instance, project)));
  return [...lines, `projects looked at: ${asked.length}, places found: ${lines.length}`];
}

async function projectsOf(instance: Instance): Promise<readonly string[]> {
  const path = '/workspace.v1.AdminService/ListProjects';
  const { projects } = await callInstance<{
    readonly projects: readonly { readonly id: string }[];
  }>(instance, path, {});
  return projects.map(({ id }) => id);
}

async function linesOfProject(instance: Instance, project: string): Promise<readonly string[]> {
  const imported = await importedVersions(instance, project);
  const lines: string[] = [];
  for (const version of ['0', ...imported]) {
    const { version: found, model_json: json } = await callInstance<{
      readonly version?: VersionJson;
      readonly model_json: string;
    }>(instance, '/gatehouse.v1.ModelService/GetModel', { project_id: project, version });
    const isTwice = version === '0' && imported.includes(found?.version ?? '');
    const { model } = inspectModel(json);
    if (isTwice || model === undefined) continue;
    for (const { path, message } of readingsOfImported(model)) {
      const origin = version === '0' ? 'if it was imported' : "through OpenFGA's API";
      lines.push(`project ${project}, version ${found?.version}, ${origin}: ${path}: ${message}`);
    }
  }
  return lines;
}

/** Versions that came through OpenFGA's API, the newest first. */
async function importedVersions(instance: Instance, project: string): Promise<readonly string[]> {
  const found: string[] = [];
  let token = '';
  do {
    const path = '/gatehouse.v1.ModelService/ListModelVersions';
    const page = await callInstance<{
      readonly versions: readonly VersionJson[];
      readonly next_page_token: string;
    }>(instance, path, { project_id: project, page_size: PAGE_SIZE, page_token: token });
    for (const { version, comment } of page.versions) {
      if (comment.startsWith(OPENFGA_COMMENT)) found.push(version);
    }
    token = page.next_page_token;
  } while (token !== '');
  return found;
}
