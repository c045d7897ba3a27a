import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { usage } from '../../command-line/parse-words.ts';
import { readSecretFile } from '../../config/secret-file.ts';
import { CallerScopes, type NameList } from '../../gateway/callers/caller-scopes.ts';
import {
  type CallerDefinition,
  type CallersFile,
  parseCallersFile,
} from '../../gateway/callers/callers-file.ts';
import { FSCK_RULES, type TargetedRule, RULES } from '../../gateway/callers/method-rules.ts';
import { AppError } from '../../shared/app-error.ts';
import { meant } from '../../shared/text/nearest-name.ts';
import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { fileError, readSecret } from '../core/files.ts';
import { showRows } from '../core/rows.ts';
import { assertNoWords, wordsOf } from './words.ts';

/** Rights of all users but the owner and its group. */
const RIGHTS_OF_OTHERS = 0o007;

/**
 * `callers check`. Resolves to 1 if the service would refuse the file. Errors: FILE_INVALID for a
 * file that cannot be read.
 */
export function checkCallers(line: CliLine): Promise<number> {
  const [path = ''] = wordsOf(line, ['a file']);
  const { output, notes } = line.screens;
  let file: CallersFile;
  const text = textOf(path);
  try {
    file = parseCallersFile(text);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    output.line(output.foreign(`${path}: ${error.message}`));
    return Promise.resolve(EXIT_NO);
  }
  showRows(line, file.callers.flatMap(rowsOf), COLUMNS, (row) => [
    row.caller,
    credentialText(row),
    row.rate === null ? 'any' : `${row.rate.per_second}/s, burst ${row.rate.burst}`,
    namesText(row.projects),
    namesText(row.tenants),
    namesText(row.services),
    namesText(row.methods),
  ]);
  if ((statSync(path).mode & RIGHTS_OF_OTHERS) !== 0) {
    notes.line(`${notes.foreign(path)} is open to all users of this machine: chmod 600 it`);
  }
  return Promise.resolve(EXIT_OK);
}

const COLUMNS = ['caller', 'credentials', 'rate', 'projects', 'tenants', 'services', 'methods'];

/** A scope of a caller; a caller without scopes has one empty row. */
type ScopeRow = {
  readonly caller: string;
  readonly tokens: number;
  readonly token_sha256: number;
  readonly jwt: number;
  readonly rate: { readonly per_second: number; readonly burst: number } | null;
  readonly projects: NameList;
  readonly tenants: NameList;
  readonly services: NameList;
  readonly methods: NameList;
};

function rowsOf(caller: CallerDefinition): readonly ScopeRow[] {
  const { name, tokens, tokenDigests, jwts, rateLimit } = caller;
  const none = { projects: [], tenants: [], services: [], methods: [] };
  return (caller.scopes.length === 0 ? [none] : caller.scopes).map((scope) => ({
    caller: name,
    tokens: tokens.length,
    token_sha256: tokenDigests.length,
    jwt: jwts.length,
    rate:
      rateLimit === undefined ? null : { per_second: rateLimit.perSecond, burst: rateLimit.burst },
    ...scope,
  }));
}

function credentialText({ tokens, token_sha256: digests, jwt }: ScopeRow): string {
  const parts = [
    [tokens, 'tokens'],
    [digests, 'hashes'],
    [jwt, 'jwt'],
  ] as const;
  return parts.flatMap(([count, what]) => (count === 0 ? [] : `${count} ${what}`)).join(', ');
}

function namesText(names: NameList): string {
  if (names === '*') return '*';
  return names.length === 0 ? '-' : names.map((name) => name || '""').join(', ');
}

/**
 * `callers may`. Resolves to 1 if the scopes do not admit the call. Errors: INVALID_REQUEST,
 * FILE_INVALID.
 */
export function mayCall(line: CliLine): Promise<number> {
  const [path = '', name = '', method = ''] = wordsOf(line, ['a file', 'a caller', 'a method']);
  const { callers } = parsed(path);
  const caller = callers.find((one) => one.name === name);
  if (caller === undefined) {
    const names = callers.map((one) => one.name);
    throw usage(`${path} has no caller ${name}${meant(name, names)}`);
  }
  const rule = ruleOf(method);
  const projectId = line.text('project') ?? '';
  const tenantId = line.text('tenant') ?? '';
  const place = { projectId, tenantId, allTenants: line.isSet('all-tenants') };
  // All fields by which requests name a place.
  const asked = { ...place, id: projectId, scope: place, options: place };
  const defaultProjectId = line.environment['GATEWAY_DEFAULT_PROJECT_ID'] ?? '';
  const scopes = new CallerScopes(caller.scopes, defaultProjectId || 'default');
  const isAdmitted = scopes.admit(rule, rule.targetOf(asked));
  const needs = rule.needs.length === 0 ? 'nothing' : rule.needs.join(' and ');
  line.screens.output.line(`${isAdmitted ? 'yes' : 'no'}: ${method} needs ${needs}`);
  return Promise.resolve(isAdmitted ? EXIT_OK : EXIT_NO);
}

function ruleOf(method: string): TargetedRule<unknown> {
  const rules = new Map([
    ...[...RULES].map(([path, rule]) => [path.slice(1), rule] as const),
    ...Object.values(FSCK_RULES).map(
      (rule) =>
        [`${rule.service}/${rule.method}`, { ...rule, targetOf: () => rule.targetOf() }] as const,
    ),
  ]);
  const rule = rules.get(method.replace(/^\//, ''));
  if (rule !== undefined) return rule;
  throw usage(`there is no method ${method}${meant(method, rules.keys())}`);
}

/** `callers hash`. Errors: FILE_INVALID for text that is not a token. */
export function hashToken(line: CliLine): Promise<number> {
  assertNoWords(line);
  const token = readSecret(line.text('token-file') ?? '-');
  line.screens.output.line(createHash('sha256').update(token).digest('hex'));
  return Promise.resolve(EXIT_OK);
}

function parsed(path: string): CallersFile {
  const text = textOf(path);
  try {
    return parseCallersFile(text);
  } catch (error) {
    if (error instanceof AppError) throw fileError(path, error.message);
    throw error;
  }
}

/** The file, read as the service reads it. */
function textOf(path: string): string {
  try {
    return readSecretFile(path);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw fileError(path, error.message.replace('the file that it names ', ''));
  }
}
