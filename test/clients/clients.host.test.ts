import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Service, startService, TEST_ADMIN_SECRET } from '../support/service.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';

/* docs/clients.md, as it stands there: each example makes its client of proto/, and prints what it is let to see. */

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'clients-'));
const TIMEOUT_MS = 600_000;
let service: Service;

beforeAll(async () => {
  service = await startService({ postgres: 'shared' });
}, 120_000);
afterAll(async () => {
  expect(await service.stop()).toBe(0);
  rmSync(folder, { recursive: true });
});

/** The blocks of code under a heading of the document, by their language, in order. */
function blocksUnder(heading: string): ReadonlyMap<string, string> {
  const text = readFileSync('docs/clients.md', 'utf8');
  const part = text.split(/^## /m).find((one) => one.startsWith(`${heading}\n`)) ?? '';
  const found = new Map<string, string>();
  for (const [, language = '', code = ''] of part.matchAll(/^```(\w+)\n([^]*?)^```$/gm)) {
    found.set(language, code);
  }
  return found;
}

/** Prints what grpc-go has an application see of the error of a model that begins with `namespace aü`. */
const GRPC_GO = `package main

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func main() {
	conn, err := grpc.NewClient(os.Getenv("GATEHOUSE_ADDRESS"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	request := &emptypb.Empty{}
	request.ProtoReflect().SetUnknown(field(2, field(2, []byte("namespace aü {"))))
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+os.Getenv("GATEHOUSE_TOKEN"), "x-admin-secret", "${TEST_ADMIN_SECRET}")
	err = conn.Invoke(ctx, "/gatehouse.v1.ModelService/WriteModel", request, &emptypb.Empty{})
	fmt.Println(status.Convert(err).Message())
}
`;

/** A folder with proto/ and one file for each of `files`. */
function folderFor(name: string, files: Readonly<Record<string, string | undefined>>): string {
  const path = join(folder, name);
  cpSync('proto', join(path, 'proto'), { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text ?? '');
  return path;
}

/** What a command prints. Errors: rejects with all of it when the command fails. */
async function output(cwd: string, program: string, ...args: string[]): Promise<string> {
  const bin = resolve('node_modules/.bin');
  const env = {
    ...process.env,
    PATH: [bin, process.env['PATH'] ?? ''].join(delimiter),
    GATEHOUSE_URL: service.baseUrl,
    GATEHOUSE_ADDRESS: service.address,
    GATEHOUSE_TOKEN: service.token,
  };
  const { stdout } = await run(program, args, { cwd, env, timeout: TIMEOUT_MS });
  return stdout.trim();
}

function has(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((path) => {
    try {
      return readFileSync(join(path, program)).length > 0;
    } catch (error) {
      if (error instanceof Error) return false;
      throw error;
    }
  });
}

/** This Node.js, and that of the machine, which may be an older one: what a user has. */
function nodes(): readonly string[] {
  const own = resolve('node_modules');
  const found = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((path) => join(path, 'node'))
    .filter((path) => !path.startsWith(own) && existsSync(path));
  return [...new Set([process.execPath, ...found].map((path) => realpathSync(path)))];
}

describe('a client in', () => {
  inShort(test).skipIf(!has('curl'))('curl', async () => {
    const script = blocksUnder('curl').get('sh') ?? '';
    expect(await output('.', 'sh', '-euc', script)).toBe('true');
  });

  test(
    'TypeScript',
    async () => {
      const blocks = blocksUnder('TypeScript');
      const cwd = folderFor('typescript', {
        'buf.gen.yaml': blocks.get('yaml'),
        'example.mjs': blocks.get('ts'),
        'example.ts': blocks.get('ts'),
        'package.json': '{"type":"module"}',
      });
      symlinkSync(resolve('node_modules'), join(cwd, 'node_modules'));
      // In short what the example is made of alone, which takes a fourth of the time.
      const part = byLength(['--path', 'proto/workspace/v1'], []);
      await output(cwd, 'buf', 'generate', ...part);
      for (const node of nodes()) expect(await output(cwd, node, 'example.mjs'), node).toBe('true');
      if (byLength(true, false)) return;
      const options = ['--strict', '--noEmit', '--skipLibCheck', '--types', 'node'];
      const modules = ['--module', 'nodenext', '--target', 'es2024'];
      expect(await output(cwd, 'tsc', ...options, ...modules, 'example.ts')).toBe('');
    },
    TIMEOUT_MS,
  );

  inLong(test).skipIf(!has('go'))(
    'Go',
    async () => {
      const blocks = blocksUnder('Go');
      const cwd = folderFor('go', {
        'buf.gen.yaml': blocks.get('yaml'),
        'main.go': blocks.get('go'),
      });
      await output(cwd, 'buf', 'generate');
      expect(await output(cwd, 'sh', '-euc', blocks.get('sh') ?? '')).toBe('true');
    },
    TIMEOUT_MS,
  );

  inLong(test).skipIf(!has('go'))(
    'Go, with grpc-go: the text of an error',
    async () => {
      const cwd = folderFor('grpc-go', { 'main.go': GRPC_GO });
      const made = 'go mod init example && go mod edit -require google.golang.org/grpc@v1.82.1';
      const text = await output(cwd, 'sh', '-euc', `${made} && go mod tidy && go run .`);
      expect(text).toBe('gate: line 1, column 12: expected "{" before the relations but found "ü"');
    },
    TIMEOUT_MS,
  );

  inLong(test).skipIf(process.env['PYTHON_GRPC'] === undefined)(
    'Python with PYTHON_GRPC',
    async () => {
      const blocks = blocksUnder('Python');
      const cwd = folderFor('python', { 'example.py': blocks.get('python') });
      // PYTHON_GRPC names an interpreter that has grpcio-tools.
      const python = process.env['PYTHON_GRPC'] ?? '';
      const script = (blocks.get('sh') ?? '').replaceAll('python3', python);
      await output(cwd, 'sh', '-euc', script);
      expect(await output(cwd, python, 'example.py')).toBe('true');
    },
    TIMEOUT_MS,
  );
});
