import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { ToolPlace } from './npm-client.ts';
import {
  type ClientEnvironment,
  type ClientOptions,
  findOnPath,
  mustRunClient,
  runClient,
} from './run-client.ts';
import { namesIn } from './tool-cache.ts';

const FLAGS = ['--disable-pip-version-check', '--no-input', '--retries', '2', '--timeout', '60'];

/** A package index of Python, asked through pip itself: its settings, credentials and proxies count. */
export class PipClient {
  readonly #env: ClientEnvironment;
  #program: Promise<string | undefined> | undefined;

  constructor(env: ClientEnvironment) {
    this.#env = env;
  }

  /** Why it cannot be used. */
  async whyNot(): Promise<string | undefined> {
    return (await this.#python()) === undefined
      ? 'there is no Python with pip on the PATH'
      : undefined;
  }

  /** Errors: UPSTREAM_ERROR. */
  async versionsOf(name: string, place: ToolPlace): Promise<string[]> {
    const text = await this.#run(['index', 'versions', name], place);
    const list = /^Available versions: (.*)$/m.exec(text)?.[1] ?? '';
    return list
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '');
  }

  /**
   * Unpacks the wheel of a package into `target`, which is made, after its bytes were compared with the
   * checksum that the index publishes. Errors: UPSTREAM_ERROR, also for a wrong checksum.
   */
  async unpack(spec: string, target: string, place: ToolPlace): Promise<void> {
    const sha256 = await this.#checksumOf(spec, place);
    const wheels = join(place.dir, 'wheels');
    mkdirSync(wheels, { recursive: true });
    const requirements = join(place.dir, 'requirements.txt');
    writeFileSync(requirements, `${spec} --hash=sha256:${sha256}\n`);
    const choice = ['--no-deps', '--only-binary', ':all:', '--no-cache-dir', '--require-hashes'];
    await this.#run(['download', ...choice, '-r', requirements, '-d', wheels], place);
    const [file = ''] = namesIn(wheels);
    const actual = createHash('sha256')
      .update(await readFile(join(wheels, file)))
      .digest('hex');
    if (actual !== sha256) {
      throw new AppError('UPSTREAM_ERROR', `the checksum of ${spec} is not the published one`);
    }
    mkdirSync(target, { recursive: true });
    const python = await this.#mustPython();
    const args = ['-m', 'zipfile', '-e', join(wheels, file), target];
    await mustRunClient(python, args, this.#options(place));
  }

  async #checksumOf(spec: string, place: ToolPlace): Promise<string> {
    const choice = ['--dry-run', '--ignore-installed', '--no-deps', '--only-binary', ':all:'];
    const report = join(place.dir, 'report.json');
    await this.#run(['install', ...choice, '--no-cache-dir', '--report', report, spec], place);
    const text = await readFile(report, 'utf8');
    const sha256 = /"sha256": *"([0-9a-f]{64})"/.exec(text)?.[1];
    if (sha256 !== undefined) return sha256;
    throw new AppError('UPSTREAM_ERROR', `the index publishes no checksum for ${spec}`);
  }

  async #run(args: readonly string[], place: ToolPlace): Promise<string> {
    const python = await this.#mustPython();
    return await mustRunClient(python, ['-m', 'pip', ...args, ...FLAGS], this.#options(place));
  }

  async #mustPython(): Promise<string> {
    const python = await this.#python();
    if (python === undefined) throw new AppError('UPSTREAM_ERROR', (await this.whyNot()) ?? '');
    return python;
  }

  async #python(): Promise<string | undefined> {
    this.#program ??= this.#find();
    return await this.#program;
  }

  async #find(): Promise<string | undefined> {
    const folders = (this.#env['PATH'] ?? '').split(':');
    for (const folder of folders) {
      const program = findOnPath('python3', folder);
      if (program === undefined) continue;
      const options = { cwd: '/', env: this.#env, timeoutMs: 30_000 };
      const { code } = await runClient(program, ['-m', 'pip', '--version'], options);
      if (code === 0) return program;
    }
    return undefined;
  }

  #options({ dir, signal }: ToolPlace): ClientOptions {
    return { cwd: dir, env: { ...this.#env, PIP_CACHE_DIR: join(dir, 'pip-cache') }, signal };
  }
}
