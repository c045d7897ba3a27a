import { usage } from '../../command-line/parse-words.ts';
import { meant } from '../../shared/text/nearest-name.ts';
import type { CliLine } from '../core/command.ts';
import { serviceUrl } from '../core/connection.ts';
import {
  type ServiceContext,
  contextsPath,
  readContexts,
  writeContexts,
} from '../core/contexts-file.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { readSecret } from '../core/files.ts';
import { showRows } from '../core/rows.ts';

const NAME = /^[\w.-]{1,64}$/;

/** `context set`. */
export function setContext(line: CliLine): Promise<number> {
  const path = contextsPath(line.environment);
  const { contexts } = readContexts(path);
  const name = nameOf(line);
  if (!NAME.test(name) || name === '__proto__') {
    throw usage(`${name}: a name has 1 to 64 letters, digits, dots, dashes and underscores`);
  }
  const kept = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  const url = line.text('url') ?? kept?.url;
  if (url === undefined) throw usage(`there is no context ${name} yet: give --url`);
  const isMoved = kept !== undefined && serviceUrl(url) !== kept.url;
  const context: ServiceContext = {
    // Credentials belong to one service and are not kept for another address.
    ...(isMoved ? { project: kept.project, tenant: kept.tenant } : kept),
    url: serviceUrl(url),
    ...given('project', line.text('project')),
    ...given('tenant', line.text('tenant')),
    ...given('token', secretOf(line, 'token-file')),
    ...given('adminSecret', secretOf(line, 'admin-secret-file')),
  } as ServiceContext;
  writeContexts(path, { current: name, contexts: { ...contexts, [name]: context } });
  line.screens.notes.line(`${name}: ${context.url}, the current context`);
  return Promise.resolve(EXIT_OK);
}

/** `context use`. */
export function switchContext(line: CliLine): Promise<number> {
  const path = contextsPath(line.environment);
  const { contexts } = readContexts(path);
  const name = existing(line, contexts);
  writeContexts(path, { current: name, contexts });
  line.screens.notes.line(`${name}: ${contexts[name]?.url ?? ''}, the current context`);
  return Promise.resolve(EXIT_OK);
}

/** `context list`. */
export function listContexts(line: CliLine): Promise<number> {
  const { current, contexts } = readContexts(contextsPath(line.environment));
  const rows = Object.entries(contexts).map(([name, context]) => ({
    name,
    current: name === current,
    url: context.url,
    project: context.project ?? '',
    tenant: context.tenant ?? '',
    token: context.token !== undefined,
    admin_secret: context.adminSecret !== undefined,
  }));
  showRows(line, rows, ['', 'name', 'url', 'project', 'tenant', 'secrets'], (row) => [
    row.current ? '*' : '',
    row.name,
    row.url,
    row.project,
    row.tenant,
    [row.token ? 'token' : '', row.admin_secret ? 'operator' : ''].filter(Boolean).join(', '),
  ]);
  return Promise.resolve(EXIT_OK);
}

/** `context delete`. */
export function deleteContext(line: CliLine): Promise<number> {
  const path = contextsPath(line.environment);
  const { current, contexts } = readContexts(path);
  const name = existing(line, contexts);
  const rest = Object.fromEntries(Object.entries(contexts).filter(([other]) => other !== name));
  writeContexts(path, { current: current === name ? undefined : current, contexts: rest });
  return Promise.resolve(EXIT_OK);
}

function nameOf({ words }: CliLine): string {
  const [name, ...more] = words;
  if (name === undefined || more.length > 0) throw usage('name one context');
  return name;
}

function existing(line: CliLine, contexts: Readonly<Record<string, ServiceContext>>): string {
  const name = nameOf(line);
  if (Object.hasOwn(contexts, name)) return name;
  throw usage(`there is no context ${name}${meant(name, Object.keys(contexts))}`);
}

function given(field: string, text: string | undefined): Readonly<Record<string, string>> {
  return text === undefined ? {} : { [field]: text };
}

function secretOf(line: CliLine, option: string): string | undefined {
  const path = line.text(option);
  return path === undefined ? undefined : readSecret(path);
}
