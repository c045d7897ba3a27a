import { peerReadings } from '../../model/cel/cel-readings.ts';
import type { NamespaceModel } from '../../model/namespace/model-shape.ts';
import { inspectModel } from '../../model/namespace/namespace-model.ts';
import { OPENFGA_COMMENT } from '../../store/sql/projects/openfga-stores.ts';
import { call } from '../core/call.ts';
import type { ServiceConnection } from '../core/connection.ts';
import type { ModelJson, VersionJson } from './model-calls.ts';

const PAGE_SIZE = 1_000;

/**
 * Differences between the conditions of an imported model and their original meaning. Models that
 * this release imports have replacement names, so that nothing is found in them. O(expressions).
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
 * The same differences, a line each, for the models of a service: those in force, and all versions
 * that came through OpenFGA's API. Covers `projects`, or all projects if it is empty. Errors: those
 * of `call`.
 */
export async function storedModelLines(
  projects: readonly string[],
  connection: ServiceConnection,
): Promise<readonly string[]> {
  const lines: string[] = [];
  const asked = projects.length > 0 ? projects : await projectsOf(connection);
  for (const project of asked) lines.push(...(await linesOfProject(connection, project)));
  return [...lines, `projects looked at: ${asked.length}, places found: ${lines.length}`];
}

async function projectsOf(connection: ServiceConnection): Promise<readonly string[]> {
  const path = 'workspace.v1.AdminService/ListProjects';
  const { projects } = await call<{
    readonly projects: readonly { readonly id: string }[];
  }>(connection, path, {});
  return projects.map(({ id }) => id);
}

async function linesOfProject(
  connection: ServiceConnection,
  project: string,
): Promise<readonly string[]> {
  const imported = await importedVersions(connection, project);
  const lines: string[] = [];
  for (const version of ['0', ...imported]) {
    const { version: found, model_json: json } = await call<ModelJson>(
      connection,
      'gatehouse.v1.ModelService/GetModel',
      { project_id: project, version },
    );
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

/** Versions that came through OpenFGA's API, newest first. */
async function importedVersions(
  connection: ServiceConnection,
  project: string,
): Promise<readonly string[]> {
  const found: string[] = [];
  let token = '';
  do {
    const path = 'gatehouse.v1.ModelService/ListModelVersions';
    const page = await call<{
      readonly versions: readonly VersionJson[];
      readonly next_page_token: string;
    }>(connection, path, { project_id: project, page_size: PAGE_SIZE, page_token: token });
    for (const { version, comment } of page.versions) {
      if (comment.startsWith(OPENFGA_COMMENT)) found.push(version);
    }
    token = page.next_page_token;
  } while (token !== '');
  return found;
}
