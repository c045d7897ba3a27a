import { usage } from '../../command-line/parse-words.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf, scopeOf, type ServiceConnection } from '../core/connection.ts';
import { EXIT_OK, EXIT_UNDECIDED } from '../core/exit-codes.ts';
import { integerOfOption, type JsonRecord } from '../core/json-values.ts';
import { tupleJson, usersetJson } from '../core/tuple-json.ts';

const PAGE = 1_000;
/** Placeholder for the object in a text without one. */
const ANY = 'any';

type ResultPage = {
  readonly next_page_token?: string;
  readonly revision_changed?: boolean;
  readonly consistency_token: string;
};
type ObjectsPage = ResultPage & {
  readonly object_ids?: readonly string[];
  readonly undecided?: boolean;
};
type SubjectsPage = ResultPage & {
  readonly user_ids?: readonly string[];
  readonly wildcard?: boolean;
  readonly wildcard_undecided?: boolean;
  readonly excluded_user_ids?: readonly string[];
  readonly undecided_user_ids?: readonly string[];
};
/** A line of a list. */
type ListRow = { readonly [name: string]: string } & { readonly state?: string };

/** `list`: objects on which a subject holds a relation, page by page. */
export async function listObjects(line: CliLine): Promise<number> {
  const text = wordOf(line, 'list doc#viewer@user:ann');
  const hash = text.indexOf('#');
  if (hash < 0 || text.slice(0, hash).includes(':')) {
    throw usage(`${text}: must read namespace#relation@subject`);
  }
  // Parsed with a placeholder for the object.
  const { namespace, relation, subject } = tupleJson(
    `${text.slice(0, hash)}:${ANY}${text.slice(hash)}`,
  );
  const connection = await connectionOf(line);
  const ask = { scope: scopeOf(line, connection), namespace, relation, subject };
  const sink = new RowSink(line, 'object');
  let isUndecided = false;
  const pages = pagesOf<ObjectsPage>(connection, 'ListObjects', ask, sink);
  for await (const page of pages) {
    isUndecided ||= page.undecided === true;
    for (const id of page.object_ids ?? []) sink.add({ object: `${namespace}:${id}` });
  }
  sink.finish();
  if (isUndecided)
    line.screens.notes.line('what could not be decided, for want of an input, is left out');
  return isUndecided ? EXIT_UNDECIDED : EXIT_OK;
}

/** `subjects`: subjects that hold a relation on an object, page by page. */
export async function listSubjects(line: CliLine): Promise<number> {
  const object = usersetJson(wordOf(line, 'subjects doc:plan#viewer'));
  const [namespace = '', relation = ''] = line.text('of')?.split('#') ?? [];
  const connection = await connectionOf(line);
  const kind = namespace === '' ? {} : { subject_namespace: namespace, subject_relation: relation };
  const ask = { scope: scopeOf(line, connection), ...object, ...kind };
  const nameOf = (id: string): string =>
    `${namespace || 'user'}:${id}${relation === '' ? '' : `#${relation}`}`;
  const sink = new RowSink(line, 'subject');
  let isUndecided = false;
  let isFirst = true;
  for await (const page of pagesOf<SubjectsPage>(connection, 'ListSubjects', ask, sink)) {
    const { wildcard, wildcard_undecided: unsure, undecided_user_ids: undecided = [] } = page;
    isUndecided ||= unsure === true || undecided.length > 0;
    if (isFirst && wildcard === true) sink.add({ subject: nameOf('*'), state: 'holds' });
    if (isFirst && unsure === true) sink.add({ subject: nameOf('*'), state: 'undecided' });
    isFirst = false;
    for (const id of page.user_ids ?? []) sink.add({ subject: nameOf(id), state: 'holds' });
    for (const id of page.excluded_user_ids ?? [])
      sink.add({ subject: nameOf(id), state: 'excluded' });
    for (const id of undecided) sink.add({ subject: nameOf(id), state: 'undecided' });
  }
  sink.finish();
  return isUndecided ? EXIT_UNDECIDED : EXIT_OK;
}

/** Prints rows as they arrive; `--json` needs all of them first. */
class RowSink {
  readonly #line: CliLine;
  readonly #column: string;
  readonly #limit: number;
  readonly #kept: ListRow[] = [];
  #count = 0;
  /** True if rows were left out. */
  hasMore = false;

  constructor(line: CliLine, column: string) {
    this.#line = line;
    this.#column = column;
    this.#limit =
      integerOfOption('limit', line.text('limit'), 1, Number.MAX_SAFE_INTEGER) ?? Infinity;
  }

  get isFull(): boolean {
    return this.#count >= this.#limit;
  }

  /** Number of rows that may still be added. */
  get capacity(): number {
    return this.#limit - this.#count;
  }

  add(row: ListRow): void {
    if (this.isFull) {
      this.hasMore = true;
      return;
    }
    this.#count += 1;
    const { output } = this.#line.screens;
    if (this.#line.isSet('jsonl')) output.line(JSON.stringify(row));
    else if (this.#line.isSet('json')) this.#kept.push(row);
    else {
      const end = row.state === undefined || row.state === 'holds' ? '' : `  ${row.state}`;
      output.line(output.foreign(`${row[this.#column] ?? ''}${end}`));
    }
  }

  finish(): void {
    if (this.#line.isSet('json') && !this.#line.isSet('jsonl')) {
      this.#line.screens.output.line(JSON.stringify(this.#kept, undefined, 2));
    }
  }

  note(text: string): void {
    this.#line.screens.notes.line(text);
  }
}

async function* pagesOf<P extends ResultPage>(
  connection: ServiceConnection,
  method: string,
  ask: JsonRecord,
  sink: RowSink,
): AsyncGenerator<P> {
  let token = '';
  let hasMoved = false;
  do {
    const body = { ...ask, page_size: Math.min(PAGE, sink.capacity), page_token: token };
    const page: P = await call<P>(connection, `gatehouse.v1.QueryService/${method}`, body);
    yield page;
    hasMoved ||= page.revision_changed === true;
    token = page.next_page_token ?? '';
  } while (token !== '' && !sink.isFull);
  if (token !== '' || sink.hasMore) sink.note('there are more');
  if (hasMoved) sink.note('the tuples changed meanwhile: later pages are of a later revision');
}

function wordOf(line: CliLine, example: string): string {
  const [word, ...more] = line.words;
  if (word === undefined || more.length > 0) throw usage(`one word, please: ${example}`);
  return word;
}
