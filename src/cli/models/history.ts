import { usage } from '../../command-line/parse-words.ts';
import type { CliLine } from '../core/command.ts';
import { type ServiceConnection, connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { writeText } from '../core/files.ts';
import { integerOfOption } from '../core/json-values.ts';
import { showAnswer, showRows } from '../core/rows.ts';
import { say } from './files/model-files.ts';
import {
  type ModelJson,
  modelCall,
  stateText,
  type VersionJson,
  versionOf,
} from './model-calls.ts';

const LIMIT = { default: 100, max: 1_000_000 } as const;
const PAGE_MAX = 1_000;
const COLUMNS = ['version', 'state', 'created', 'by', 'call', 'comment'];
const COMMENT_SHOWN_MAX = 60;

/** `model history`. */
export async function listVersions(line: CliLine): Promise<number> {
  if (line.words.length > 0) throw usage('takes no words; a project is named by --project');
  const limit = integerOfOption('limit', line.text('limit'), 1, LIMIT.max) ?? LIMIT.default;
  const versions = await newestVersions(await connectionOf(line), limit);
  showRows(line, versions, COLUMNS, (one) => [
    one.version,
    stateText(one.state) + (one.forced ? ', forced' : ''),
    one.created_at ?? '',
    one.created_by,
    one.rolled_back_to === '0' ? one.rpc : `${one.rpc} to ${one.rolled_back_to}`,
    line.screens.output.brief(one.comment, COMMENT_SHOWN_MAX),
  ]);
  return EXIT_OK;
}

/** `model show`. */
export async function showVersion(line: CliLine): Promise<number> {
  const version = versionOf(line);
  const out = line.text('out');
  const connection = await connectionOf(line);
  const body = version === undefined ? {} : { version };
  const model = await modelCall<ModelJson>(connection, 'GetModel', body);
  if (out !== undefined) {
    const text = line.isSet('json') ? `${JSON.stringify(model, undefined, 2)}\n` : textOf(model);
    writeText(out, text);
    return EXIT_OK;
  }
  const { version: found } = model;
  const about = found && `version ${found.version}, ${stateText(found.state)}`;
  say(line, about ?? 'the built-in model: the project never had another');
  showAnswer(line, model, () => textOf(model).replace(/\n$/, '').split('\n'));
  return EXIT_OK;
}

/**
 * The readable form; the JSON form of a model from an earlier release that the readable form cannot
 * express.
 */
function textOf({ model_gate: gate, model_json: json }: ModelJson): string {
  return gate || json || 'built-in\n';
}

async function newestVersions(
  connection: ServiceConnection,
  limit: number,
): Promise<readonly VersionJson[]> {
  const found: VersionJson[] = [];
  let token = '';
  do {
    const size = Math.min(PAGE_MAX, limit - found.length);
    const page = await modelCall<{
      readonly versions: readonly VersionJson[];
      readonly next_page_token: string;
    }>(connection, 'ListModelVersions', { page_size: size, page_token: token });
    found.push(...page.versions);
    token = page.next_page_token;
  } while (token !== '' && found.length < limit);
  return found;
}
