import { execFile, spawn } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';

const run = promisify(execFile);
const IDENTITY = {
  GIT_AUTHOR_NAME: 'Mona Lisa',
  GIT_AUTHOR_EMAIL: 'mona@example.com',
  GIT_COMMITTER_NAME: 'Mona Lisa',
  GIT_COMMITTER_EMAIL: 'mona@example.com',
};

const SETTINGS = { 'gc.auto': '0', 'maintenance.auto': 'false', 'http.receivepack': 'true' };
/** For all that git starts as well; nothing tidies up behind a commit or a push. */
const CONFIGURED = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_COUNT: String(Object.keys(SETTINGS).length),
  ...Object.fromEntries(
    Object.entries(SETTINGS).flatMap(([key, value], i) => [
      [`GIT_CONFIG_KEY_${i}`, key],
      [`GIT_CONFIG_VALUE_${i}`, value],
    ]),
  ),
};

/**
 * Runs git in `dir`, away from the user's settings; its trimmed output. A last argument
 * `{ date }` sets both dates of a commit.
 */
export async function gitIn(
  dir: string,
  ...args: readonly (string | { readonly date: string })[]
): Promise<string> {
  const words = args.filter((arg) => typeof arg === 'string');
  const dated = args.find((arg) => typeof arg !== 'string');
  const { stdout } = await run('git', words, {
    cwd: dir,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: dir,
      ...CONFIGURED,
      LC_ALL: 'C',
      ...IDENTITY,
      ...(dated === undefined
        ? {}
        : { GIT_AUTHOR_DATE: dated.date, GIT_COMMITTER_DATE: dated.date }),
    },
  });
  return stdout.trim();
}

/** Smart HTTP by git's own CGI program (git-http-backend(1)), behind Basic credentials. */
export async function serveGit(
  root: string,
  token: string,
  request: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  const { headers, method = 'GET', url = '/' } = request;
  const expected = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  if (headers.authorization !== expected) {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="fake"' });
    response.end('Authentication required');
    return;
  }
  const { pathname, search } = new URL(url, 'http://localhost');
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      ...CONFIGURED,
      HOME: root,
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: method,
      REMOTE_USER: 'x-access-token',
      CONTENT_TYPE: headers['content-type'] ?? '',
      CONTENT_LENGTH: String(body.length),
      HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
      HTTP_GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) chunks.push(chunk);
  const output = Buffer.concat(chunks);
  const end = output.indexOf('\r\n\r\n');
  const lines = output.toString('latin1', 0, end).split('\r\n');
  let status = 200;
  for (const line of lines) {
    const [name = '', value = ''] = line.split(/:\s*/, 2);
    if (name.toLowerCase() === 'status') status = Number(value.slice(0, 3));
    else response.setHeader(name, value);
  }
  response.writeHead(status);
  response.end(output.subarray(end + 4));
}
