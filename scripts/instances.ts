import { loadConfigOrExit } from '../src/config/load-config.ts';

/** An instance, and what it must be told. */
export type Instance = { readonly url: string; readonly headers: Record<string, string> };

/** Calls `service/method` of an instance. Errors: throws with what it answered. */
export async function callInstance<T>(
  { url, headers }: Instance,
  path: string,
  body: object,
): Promise<T> {
  const response = await fetch(new URL(path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status === 401 && headers['authorization'] === undefined) {
    throw new Error(
      `${url} asks for a service token, and none is given: set GATEWAY_SERVICE_AUTH_TOKENS (or GATEWAY_SERVICE_AUTH_TOKENS_FILE) as for the service`,
    );
  }
  if (response.status === 403 && headers['x-admin-secret'] === undefined) {
    throw new Error(
      `${url} asks for the operator secret, and none is given: set GATEWAY_ADMIN_API_SECRET as for the service`,
    );
  }
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}

/**
 * The instances at these URLs; without any, the one on this machine at the port of the settings. They are told the first
 * service token and the first operator secret of the settings. Ends the process where settings are wrong.
 */
export function instancesOf(urls: readonly string[] | undefined): readonly Instance[] {
  const config = loadConfigOrExit();
  const host = ['0.0.0.0', '::', undefined].includes(config.host) ? '127.0.0.1' : config.host;
  const authority = host.includes(':') ? `[${host}]` : host;
  const [token] = config.serviceAuthTokens;
  const [secret] = config.adminApiSecrets;
  const headers: Record<string, string> = {};
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
  if (secret !== undefined) headers['x-admin-secret'] = secret;
  return (urls ?? [`http://${authority}:${config.connectPort}`]).map((url) => ({ url, headers }));
}
