import { usage } from '../../command-line/parse-words.ts';
import type { CliLine } from './command.ts';
import { type ServiceContext, contextsPath, readContexts } from './contexts-file.ts';
import { isSecret, readSecret } from './files.ts';
import { integerOfOption, type JsonRecord, objectOfOption } from './json-values.ts';
import { tupleJson } from './tuple-json.ts';

/** A service, and the data that every call to it carries. */
export type ServiceConnection = {
  /** Has no slash at the end. */
  readonly url: string;
  /** Empty: the service's default. */
  readonly project: string;
  readonly tenant: string;
  readonly token: string | undefined;
  readonly adminSecret: string | undefined;
  readonly timeoutMs: number;
};

type ServiceCredentials = Pick<ServiceConnection, 'token' | 'adminSecret'>;

const URL_DEFAULT = 'http://127.0.0.1:8080';
const TIMEOUT_SECONDS = { default: 30, max: 86_400 } as const;

/**
 * The service that a command addresses; the first one if `--url` names several. Errors: those of
 * `connectionsOf`.
 */
export async function connectionOf(line: CliLine): Promise<ServiceConnection> {
  const [first] = await connectionsOf(line);
  if (first === undefined) throw usage('--url: must name a service');
  return first;
}

/**
 * The services that a command addresses. Options precede the environment (GATEHOUSE_URL,
 * GATEHOUSE_PROJECT, GATEHOUSE_TENANT, GATEHOUSE_TOKEN, GATEHOUSE_ADMIN_SECRET), which precedes the
 * context.
 *
 * `--url` or GATEHOUSE_URL disables contexts, so that a context's credentials go to its own service
 * only. Without a context, credentials in the service's own settings are used, if this process has
 * them.
 * Errors: INVALID_REQUEST, FILE_INVALID; CONFIG_INVALID for wrong settings of the service.
 */
export async function connectionsOf(line: CliLine): Promise<readonly ServiceConnection[]> {
  const { environment } = line;
  const named = line.text('context') ?? nonEmpty(environment['GATEHOUSE_CONTEXT']);
  const given = line.texts('url');
  const urls = given.length > 0 ? given : listOf(nonEmpty(environment['GATEHOUSE_URL']));
  if (urls.length > 0 && line.text('context') !== undefined) {
    throw usage('--context: has its own service, so that --url cannot name another');
  }
  const context = urls.length > 0 ? undefined : contextOf(line, named);
  const own: ServiceCredentials = {
    token: secretOf(line, 'token-file', 'GATEHOUSE_TOKEN'),
    adminSecret: secretOf(line, 'admin-secret-file', 'GATEHOUSE_ADMIN_SECRET'),
  };
  const local = context === undefined ? await localService(environment) : undefined;
  const timeout = integerOfOption('timeout', line.text('timeout'), 1, TIMEOUT_SECONDS.max);
  const common = {
    project: textOf(line, 'project', 'GATEHOUSE_PROJECT') ?? context?.project ?? '',
    tenant: textOf(line, 'tenant', 'GATEHOUSE_TENANT') ?? context?.tenant ?? '',
    token: own.token ?? context?.token ?? local?.token,
    adminSecret: own.adminSecret ?? context?.adminSecret ?? local?.adminSecret,
    timeoutMs: (timeout ?? TIMEOUT_SECONDS.default) * 1000,
  };
  const all = urls.length > 0 ? urls : [context?.url ?? local?.url ?? URL_DEFAULT];
  return all.map((url) => ({ ...common, url: serviceUrl(url) }));
}

/**
 * The address of a service, without a slash at the end.
 * Errors: INVALID_REQUEST naming `option`, for text of any other form, and for a URL with a user, a
 * password, a query or a fragment. A password in an argument would be seen by others.
 */
export function serviceUrl(text: string, option = 'url'): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw usage(`--${option}: ${text} must read http://HOST:PORT or https://HOST:PORT`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw usage(
      `--${option}: must have no user, password or query; a token comes from a file or GATEHOUSE_TOKEN`,
    );
  }
  return url.href.replace(/\/$/, '');
}

function contextOf(line: CliLine, named: string | undefined): ServiceContext | undefined {
  const path = contextsPath(line.environment);
  const { current, contexts } = readContexts(path);
  const name = named ?? current;
  if (name === undefined) return undefined;
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (context !== undefined) return context;
  const known = Object.keys(contexts).join(', ');
  throw usage(`there is no context ${name}${known === '' ? '' : `; there are ${known}`}`);
}

/** The service on this machine by its own settings, if this process has any of them. */
async function localService(
  environment: CliLine['environment'],
): Promise<(ServiceCredentials & { readonly url: string }) | undefined> {
  if (!Object.keys(environment).some((name) => name.startsWith('GATEWAY_'))) return undefined;
  const { loadConfig } = await import('../../config/load-config.ts');
  const { host: set, connectPort, serviceAuthTokens, adminApiSecrets } = loadConfig(environment);
  const host = ['0.0.0.0', '::'].includes(set) ? '127.0.0.1' : set;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${connectPort}`,
    token: serviceAuthTokens[0],
    adminSecret: adminApiSecrets[0],
  };
}

function secretOf(line: CliLine, option: string, variable: string): string | undefined {
  const path = line.text(option);
  if (path !== undefined) return readSecret(path);
  const text = nonEmpty(line.environment[variable]);
  // The text may be a secret, so the error does not repeat it.
  if (text !== undefined && !isSecret(text)) {
    throw usage(`${variable}: must be printable ASCII without spaces`);
  }
  return text;
}

function textOf(line: CliLine, option: string, variable: string): string | undefined {
  return line.text(option) ?? nonEmpty(line.environment[variable]);
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function listOf(text: string | undefined): readonly string[] {
  return text === undefined ? [] : [text];
}

/**
 * A `gatehouse.v1.QueryScope` of the project, the tenant and the options READ. Errors:
 * INVALID_REQUEST naming the option.
 */
export function scopeOf(line: CliLine, { project, tenant }: ServiceConnection): JsonRecord {
  const token = line.text('at-least');
  const input = line.text('input');
  const tuples = line.texts('with').map(tupleJson);
  const version = integerOfOption(
    'model-version',
    line.text('model-version'),
    1,
    Number.MAX_SAFE_INTEGER,
  );
  return {
    ...(project === '' ? {} : { project_id: project }),
    ...(tenant === '' ? {} : { tenant_id: tenant }),
    ...(token === undefined ? {} : { at_least_consistency_token: token }),
    ...(input === undefined ? {} : { context: objectOfOption('input', input) }),
    ...(tuples.length === 0 ? {} : { contextual_tuples: tuples }),
    ...(version === undefined ? {} : { model_version: String(version) }),
    ...(line.isSet('exact') ? { userset_mode: 'USERSET_MODE_EXACT' } : {}),
  };
}

/**
 * The host of a URL for a listening address: this machine for all of its addresses, brackets for
 * IPv6.
 */
export function hostOfUrl(listened: string): string {
  const host = ['0.0.0.0', '::'].includes(listened) ? '127.0.0.1' : listened;
  return host.includes(':') ? `[${host}]` : host;
}
