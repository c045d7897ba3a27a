import { AppError } from '../../shared/app-error.ts';
import type { HostPublicKey, HostSecretPort } from '../secrets/host-port.ts';
import { objectOf, textOf } from './cache-entry.ts';
import type { HostClient } from './host-client.ts';
import { nextOfLink } from './page-memory.ts';

/** A host keeps up to 100 secrets of an environment and 100 of a repository; hosts of one's own may differ. */
const PAGES_MAX = 20;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export type HostTarget = { readonly owner: string; readonly repo: string };

/**
 * Secrets of the repository and of its environments through the REST API
 * (docs.github.com/rest/actions/secrets). `target` is the configured repository, or the text that says
 * why there is none.
 */
export function createHostSecrets(
  client: HostClient,
  target: () => HostTarget | string,
): HostSecretPort {
  return {
    problem() {
      const found = target();
      return typeof found === 'string' ? found : undefined;
    },
    async publicKey(environment): Promise<HostPublicKey> {
      const path = `${folderOf(target, environment)}/public-key`;
      const { status, json } = await client.send({ method: 'GET', path, accept: [404] });
      if (status === 404) throw unknownEnvironment(environment);
      const { key_id: keyId, key } = objectOf(json) ?? {};
      if (typeof key !== 'string' || (typeof keyId !== 'string' && typeof keyId !== 'number')) {
        throw new AppError('UPSTREAM_ERROR', 'the code host answered without a public key');
      }
      return { keyId: String(keyId), key };
    },
    async putSecret(environment, name, sealed) {
      const { status } = await client.send({
        method: 'PUT',
        path: `${folderOf(target, environment)}/${nameOf(name)}`,
        body: { encrypted_value: sealed.encryptedValue, key_id: sealed.keyId },
      });
      return status === 201 ? 'created' : 'updated';
    },
    async removeSecret(environment, name) {
      const { status } = await client.send({
        method: 'DELETE',
        path: `${folderOf(target, environment)}/${nameOf(name)}`,
        accept: [404],
      });
      return status !== 404;
    },
    listSecrets: (environment) => listSecrets(client, folderOf(target, environment)),
  };
}

async function listSecrets(
  client: HostClient,
  folder: string,
): Promise<readonly { readonly name: string; readonly updatedAt: string }[]> {
  const found: { readonly name: string; readonly updatedAt: string }[] = [];
  let path: string | undefined = `${folder}?per_page=100`;
  for (let page = 0; path !== undefined; page++) {
    if (page === PAGES_MAX) {
      throw new AppError('UPSTREAM_ERROR', 'the code host answered with a list without an end');
    }
    const { status, json, headers } = await client.send({ method: 'GET', path, accept: [404] });
    if (status === 404) return found;
    const secrets = objectOf(json)?.['secrets'];
    if (!Array.isArray(secrets)) {
      throw new AppError('UPSTREAM_ERROR', 'the code host answered without a list of secrets');
    }
    for (const item of secrets) {
      const secret = objectOf(item);
      const name = textOf(secret?.['name']);
      if (NAME.test(name)) found.push({ name, updatedAt: textOf(secret?.['updated_at']) });
    }
    path = nextOfLink(headers.get('link'));
  }
  return found;
}

/** Errors: REMOTE_MISSING. */
function folderOf(target: () => HostTarget | string, environment: string): string {
  const found = target();
  if (typeof found === 'string') throw new AppError('REMOTE_MISSING', found);
  const repository = `/repos/${found.owner}/${found.repo}`;
  if (environment === 'default') return `${repository}/actions/secrets`;
  // `.` and `..` would change the path even when encoded.
  if (/^\.{1,2}$/.test(environment)) throw unknownEnvironment(environment);
  return `${repository}/environments/${encodeURIComponent(environment)}/secrets`;
}

function nameOf(name: string): string {
  if (NAME.test(name)) return name;
  throw new AppError('INVALID_NAME', 'not the name of a secret', { field: 'name' });
}

function unknownEnvironment(environment: string): AppError {
  return new AppError(
    'BACKEND_UNAVAILABLE',
    environment === 'default'
      ? 'the code host has no such repository, or the token may not manage its secrets'
      : 'the code host has no such environment; create it there first',
    { backend: 'host' },
  );
}
