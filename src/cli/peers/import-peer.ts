import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { usage } from '../../command-line/parse-words.ts';
import { type ImportedModel, importPeerModel } from '../../language/peers/import-peer-model.ts';
import type { PeerTuple } from '../../language/peers/peer-model.ts';
import { type TupleNaming, tupleLine } from '../../language/peers/tuple-line.ts';
import { AppError } from '../../shared/app-error.ts';
import { call, request, unavailable } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { type ServiceConnection, connectionOf } from '../core/connection.ts';
import { type CliReason, EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { integerOfOption } from '../core/json-values.ts';
import { awaitActivation, type WrittenJson } from '../models/activation.ts';
import { modelCall, stateText } from '../models/model-calls.ts';
import { compare, type Comparison } from './compare-answers.ts';
import type { PeerSource } from './peer-source.ts';
import { drawOf, queriesOf, Reservoir } from './sample.ts';

const SAMPLE = { default: 1_000, max: 100_000 } as const;
/** Most tuples from which queries are made. */
const RESERVOIR = 2_000;
const FLUSH_CHARACTERS = 64 * 1024;
const SHOWN_MAX = 20;
const ACTIVATION_MS_MAX = 600_000;

type Counts = { readonly tuples: number; readonly skipped: number };

/**
 * Imports the model and the tuples of a running peer into a project and tenant, and sends a sample
 * of queries to both. Resolves to the exit code.
 */
export async function importPeer(
  line: CliLine,
  open: (timeoutMs: number) => Promise<PeerSource>,
): Promise<number> {
  const { notes } = line.screens;
  const sample = integerOfOption('sample', line.text('sample'), 0, SAMPLE.max) ?? SAMPLE.default;
  const seed = integerOfOption('seed', line.text('seed'), 0, 2 ** 32 - 1) ?? 1;
  const connection = await connectionOf(line);
  const source = await open(connection.timeoutMs);
  try {
    const peer = await source.readModel();
    const imported = importPeerModel(peer, { userType: line.text('user-type') });
    for (const { place, text } of imported.notes)
      notes.line(notes.foreign(`note: ${place}: ${text}`));
    for (const { place, text } of imported.problems) {
      notes.line(notes.foreign(`cannot be expressed: ${place}: ${text}`));
    }
    if (imported.document === undefined) return EXIT_NO;
    if (!line.isSet('dry-run')) await applyModel(line, connection, imported);
    const draw = drawOf(seed);
    const reservoir = new Reservoir(RESERVOIR, draw);
    const counts = await importTuples(line, connection, source, imported, reservoir);
    if (line.isSet('dry-run')) {
      showCounts(line, counts, undefined);
      return EXIT_OK;
    }
    const queries = queriesOf(peer, reservoir.kept, sample, draw);
    const comparison = await compare(line, connection, source, imported, queries);
    showCounts(line, counts, comparison);
    return comparison.differences.length === 0 ? EXIT_OK : EXIT_NO;
  } finally {
    source.close();
  }
}

/**
 * Writes the model and waits for it. Errors: REFUSED if stored tuples do not fit; those of `call`.
 */
async function applyModel(
  line: CliLine,
  connection: ServiceConnection,
  imported: ImportedModel,
): Promise<void> {
  const { project } = connection;
  if (line.isSet('create')) {
    if (project === '') throw usage('--create: name the new project with --project');
    await call(connection, 'workspace.v1.AdminService/CreateProject', {
      id: project,
      name: project,
    });
  }
  const body = {
    model: { json: JSON.stringify(imported.document) },
    comment: 'imported by gatehouse import',
  };
  const written = await modelCall<WrittenJson>(connection, 'WriteModel', body);
  const { state } = await awaitActivation(line, connection, written, ACTIVATION_MS_MAX);
  if (stateText(state) === 'active') return;
  const problem = `version ${written.version} of the model is ${stateText(state)}: gatehouse model apply says why`;
  throw new AppError<CliReason>('REFUSED', problem);
}

/**
 * Sends every tuple as a line of one import, which is all or nothing. The service checks the lines
 * as they arrive.
 */
async function importTuples(
  line: CliLine,
  connection: ServiceConnection,
  source: PeerSource,
  imported: ImportedModel,
  reservoir: Reservoir,
): Promise<Counts> {
  const { notes } = line.screens;
  const naming: TupleNaming = { names: imported.names, userType: imported.userType };
  const body = new PassThrough();
  const counts = { tuples: 0, skipped: 0 };
  const parameters = new URLSearchParams({
    ...(connection.project === '' ? {} : { project_id: connection.project }),
    ...(connection.tenant === '' ? {} : { tenant_id: connection.tenant }),
    ...(line.isSet('dry-run') ? { dry_run: 'true' } : {}),
  });
  // A separate request, whose refusal ends the reading of the peer.
  let refusal: unknown;
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: Readable.toWeb(body),
    duplex: 'half' as const,
  };
  const sent = request(connection, `/v1/tuples:import?${parameters.toString()}`, init)
    .then(async (response) => {
      await response.text().catch((error: unknown) => {
        throw unavailable(connection, error);
      });
    })
    .catch((error: unknown) => {
      refusal = error;
      body.destroy();
    });
  let text = '';
  try {
    for await (const { place, read } of source.readTuples()) {
      if (refusal !== undefined) break;
      const tuple = readOrSkip(line, place, read, naming);
      if (tuple === undefined) counts.skipped += 1;
      else {
        counts.tuples += 1;
        text += `${tuple.json}\n`;
        reservoir.add(tuple.tuple);
      }
      if (text.length < FLUSH_CHARACTERS) continue;
      notes.status(`${counts.tuples} tuples`);
      if (!body.write(text)) await Promise.race([once(body, 'drain'), sent]);
      text = '';
    }
  } catch (error) {
    // The import is aborted before its end, and writes nothing.
    body.destroy();
    await sent;
    throw error;
  }
  notes.status('');
  if (refusal === undefined) body.end(text);
  await sent;
  if (refusal !== undefined) throw refusal;
  return counts;
}

function readOrSkip(
  line: CliLine,
  place: string,
  read: () => PeerTuple,
  naming: TupleNaming,
): { readonly tuple: PeerTuple; readonly json: string } | undefined {
  try {
    const tuple = read();
    return { tuple, json: tupleLine(tuple, naming) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (!line.isSet('skip')) {
      throw new AppError<CliReason>(
        'REFUSED',
        `${place}: ${error.message}; --skip leaves such tuples out`,
      );
    }
    line.screens.notes.line(line.screens.notes.foreign(`left out: ${place}: ${error.message}`));
    return undefined;
  }
}

function showCounts(line: CliLine, counts: Counts, comparison: Comparison | undefined): void {
  const { output } = line.screens;
  if (line.isSet('json')) {
    output.line(JSON.stringify({ ...counts, ...comparison }, undefined, 2));
    return;
  }
  const skipped = counts.skipped === 0 ? '' : `, ${counts.skipped} left out`;
  output.line(`${counts.tuples} tuples${skipped}`);
  if (comparison === undefined) return;
  const { asked, allowed, errors, differences } = comparison;
  for (const { query, there, here } of differences.slice(0, SHOWN_MAX)) {
    output.line(output.foreign(`differs: ${query}: ${there} there, ${here} here`));
  }
  output.line(
    `${asked} queries asked of both: ${allowed} allowed, ${errors} errors there, ${differences.length} differ`,
  );
}
