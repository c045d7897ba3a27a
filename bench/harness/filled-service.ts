import { resolve } from 'node:path';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { World } from '../../test/support/dataset/world.ts';
import { LoadClient } from './client.ts';
import { cpuSecondsOf } from './cpu.ts';
import type { Generator, Load } from './generator.ts';
import type { Contestant } from './in-turns.ts';
import { checkouts, OPTIONS, SEED } from './options.ts';
import { type Service, startService } from './service.ts';
import { createProject, fill } from './target.ts';

/** Project and tenant of the data. */
export const SCOPE = { project_id: 'bench', tenant_id: 't1' };

/** A server that is loaded: where it listens, and its process. */
export type Target = { readonly name: string; readonly port: number; readonly pid: number };

/** A service from a checkout, on one worker, that holds the data set. */
export type FilledService = Target & { readonly service: Service };

/** The data set that every service holds. */
export function worldOf(): World {
  return new World(OPTIONS.scale, SEED);
}

/**
 * Starts one service for each checkout, fills it, and asks what `compare` has before anything is measured; `envOf` adds
 * settings. Errors: throws when an answer is another one.
 */
export async function startFilled(
  world: World,
  compare: readonly { readonly path: string; readonly body: object; readonly answer: string }[],
  envOf: (index: number) => Promise<Readonly<Record<string, string>>> = () => Promise.resolve({}),
): Promise<readonly FilledService[]> {
  const filled: FilledService[] = [];
  for (const [index, checkout] of checkouts().entries()) {
    const env = { GATEWAY_WORKERS: '1', ...(await envOf(index)) };
    const service = await startService(env, resolve(checkout));
    const port = Number(new URL(service.baseUrl).port);
    const { baseUrl, token, pid } = service;
    filled.push({ name: index === 0 ? 'this checkout' : checkout, port, pid, service });
    const client = new LoadClient({ baseUrl, token, connections: 8 });
    await createProject(client, service.adminSecret, SCOPE.project_id, DATASET_MODEL_JSON);
    await fill(client, world.tuples, SCOPE);
    for (const { path, body, answer } of compare) {
      const found = JSON.stringify(await client.call(path, body));
      if (found !== answer) throw new Error(`${JSON.stringify(body)}: ${found}, not ${answer}`);
    }
    await client.close();
  }
  return filled;
}

/** The targets as contestants under one load; the token is that of every service here. */
export function contestantsOf(
  generator: Generator,
  targets: readonly Target[],
  load: Omit<Load, 'port' | 'headers' | 'seconds' | 'perSecond'> & { readonly perSecond?: number },
  token: string,
): readonly Contestant[] {
  const authorization = `Bearer ${token}`;
  const headers: Record<string, string> =
    load.protocol === 'http1'
      ? { authorization, 'content-type': 'application/json' }
      : { authorization, 'content-type': 'application/grpc', te: 'trailers' };
  return targets.map(({ name, port, pid }) => ({
    name,
    turn: () => generator.turn({ ...load, port, headers }, () => cpuSecondsOf(pid)),
  }));
}
