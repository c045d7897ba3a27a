import { usage } from '../../command-line/parse-words.ts';
import type { CliLine } from '../core/command.ts';
import { serviceUrl } from '../core/connection.ts';
import { isSecret, readSecret } from '../core/files.ts';
import { importPeer } from './import-peer.ts';
import { openOpenFga } from './openfga-source.ts';
import { openSpiceDb } from './spicedb-source.ts';

/** `import openfga`. */
export function importOpenFga(line: CliLine): Promise<number> {
  const endpoint = endpointOf(line);
  const token = peerToken(line);
  const options = { endpoint, token, store: line.text('store'), model: line.text('model') };
  return importPeer(line, (timeoutMs) => openOpenFga({ ...options, timeoutMs }));
}

/** `import spicedb`. */
export function importSpiceDb(line: CliLine): Promise<number> {
  const endpoint = endpointOf(line);
  const token = peerToken(line);
  return importPeer(line, (timeoutMs) => openSpiceDb(endpoint, token, timeoutMs));
}

/** The address of the other service. Errors: INVALID_REQUEST naming the option. */
function endpointOf(line: CliLine): string {
  const text = line.text('endpoint');
  if (text === undefined || line.words.length > 0) {
    throw usage('--endpoint: must name the service, and nothing stands beside it');
  }
  return serviceUrl(text, 'endpoint');
}

/** The credential for the other service. Errors: INVALID_REQUEST, FILE_INVALID. */
function peerToken(line: CliLine): string | undefined {
  const path = line.text('peer-token-file');
  if (path !== undefined) return readSecret(path);
  const text = line.environment['GATEHOUSE_PEER_TOKEN'] ?? '';
  if (text === '') return undefined;
  if (isSecret(text)) return text;
  throw usage('GATEHOUSE_PEER_TOKEN: must be printable ASCII without spaces');
}
