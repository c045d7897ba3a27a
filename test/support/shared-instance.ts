import { randomUUID } from 'node:crypto';
import { afterAll, expect, inject } from 'vitest';
import type { SharedReady } from './run-shared-instance.ts';
import { call } from './service.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where files ask for the shared instance; see global-instance.ts. */
    sharedInstance: string;
  }
}

/** The service that files share, and a project of it that only the calling file knows. */
export type SharedInstance = SharedReady & {
  /** `call` and `Tenant` ask for it where a body names no project. */
  readonly projectId: string;
};

/**
 * The shared instance with a new project for the calling file. For files that change no settings of the service,
 * count none of its metrics and rows, and end nothing; all others have `instanceForFile`. That no call ended with
 * an internal failure is expected after the file. Call it once, while the file is loaded.
 */
export async function sharedInstance(): Promise<SharedInstance> {
  const ready = (await ask('')) as SharedReady;
  afterAll(async () => expect(await ask('failures')).toEqual([]));
  return { ...ready, projectId: await newProject(ready) };
}

/** Makes a project that no other file knows; its id. */
export async function newProject(
  service: Pick<SharedReady, 'baseUrl' | 'token' | 'adminSecret'>,
  fields: object = {},
): Promise<string> {
  const id = `file-${randomUUID()}`;
  const made = await call(service, 'AdminService/CreateProject', { id, name: id, ...fields });
  expect([made.status, made.body]).toEqual([200, made.body]);
  return id;
}

async function ask(what: '' | 'failures'): Promise<unknown> {
  const response = await fetch(`${inject('sharedInstance')}/${what}`);
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return JSON.parse(text) as unknown;
}
