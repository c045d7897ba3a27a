import { AppError } from '../../shared/app-error.ts';
import { parseDotenv, type DotenvEntry, type DotenvSkip } from './dotenv-parser.ts';
import { nameProblem, parseEnvironment, valueProblem } from './names.ts';
import { SECRET_BACKENDS, type ImportRequest, type SecretBackend } from './secret-api.ts';
import type { SecretAction, SecretActor, SecretAuditEvent } from './secret-audit.ts';
import { IMPORT_BYTES_MAX, IMPORT_SKIPPED_MAX } from './secret-limits.ts';

/** What the audit calls the backend of variables. */
export const VARIABLES = 'variables' as const;

/** Absent: `local`. Errors: INVALID_VALUE with metadata.field `backend`. */
export function parseBackend(backend: string | undefined): SecretBackend {
  if (backend === undefined) return 'local';
  const known = SECRET_BACKENDS.find((candidate) => candidate === backend);
  if (known === undefined) {
    throw new AppError('INVALID_VALUE', `a backend is one of ${SECRET_BACKENDS.join(', ')}`, {
      field: 'backend',
    });
  }
  return known;
}

/** Errors: INVALID_REQUEST with metadata.field `type`. */
export function parseImportType(type: string | undefined): 'secret' | 'variable' {
  if (type === undefined || type === 'secret') return 'secret';
  if (type === 'variable') return 'variable';
  throw new AppError('INVALID_REQUEST', 'type is secret or variable', { field: 'type' });
}

/** The entries of a `.env` text that can be kept. Errors: BODY_TOO_LARGE; INVALID_VALUE when strict, or when it is no such text. */
export function readImport(
  request: ImportRequest,
  type: 'secret' | 'variable',
): { readonly entries: readonly DotenvEntry[]; readonly skipped: readonly DotenvSkip[] } {
  if (Buffer.byteLength(request.content) > IMPORT_BYTES_MAX) {
    throw new AppError('BODY_TOO_LARGE', `an import has at most ${IMPORT_BYTES_MAX} bytes`, {
      field: 'content',
    });
  }
  const text = parseDotenv(request.content);
  const entries: DotenvEntry[] = [];
  const skipped = [...text.skipped];
  for (const entry of text.entries) {
    const problem = valueProblem(entry.value, type === 'variable');
    if (problem === undefined) entries.push(entry);
    else skipped.push({ line: entry.line, reason: problem });
  }
  skipped.sort((left, right) => left.line - right.line);
  const [first] = skipped;
  if (first !== undefined && (request.isStrict === true || skipped.length > IMPORT_SKIPPED_MAX)) {
    const problem = `content: lines that cannot be imported: ${skipped.length}; line ${first.line}: ${first.reason}`;
    throw new AppError('INVALID_VALUE', problem, { field: 'content', line: String(first.line) });
  }
  return { entries, skipped };
}

/** What a stranger sent for a name or environment is kept only if it is one: it may be a value by mistake. */
export function deniedEvent(
  action: SecretAction,
  request: {
    readonly name: string;
    readonly environment?: string | undefined;
    readonly backend?: string | undefined;
    readonly actor?: SecretActor | undefined;
  },
  reason: string,
): SecretAuditEvent {
  const isName = request.name !== '' && nameProblem(request.name) === undefined;
  const backend = [...SECRET_BACKENDS, VARIABLES].find(
    (candidate) => candidate === request.backend,
  );
  let environment = '';
  try {
    environment = parseEnvironment(request.environment);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
  return {
    action: 'denied',
    name: isName ? request.name.toUpperCase() : '',
    environment,
    backend: backend ?? '',
    actor: request.actor,
    result: `${action}: ${reason.toLowerCase()}`,
  };
}
