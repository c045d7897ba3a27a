import { hkdfSync, randomBytes, scrypt } from 'node:crypto';
import { constants } from 'node:fs';
import { link, mkdir, open, rm, type FileHandle } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { ifPresent, systemCode } from '../storage/file-errors.ts';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const KEY_FILE_BYTES_MAX = 64 * 1024;
/** RFC 7914; OWASP's first choice for interactive use. 128 MiB, about 0.4 s. */
const SCRYPT = { N: 2 ** 17, r: 8, p: 1, maxmem: 192 * 1024 * 1024 } as const;
/** What messages call it. */
const KEY_FILE = 'the key file runner.key';
const HEX_KEY = /^[0-9a-fA-F]{64}$/;
const BASE64_KEY = /^[A-Za-z0-9+/]{43}=$/;

export type KeySource = 'environment' | 'file';

/** The keys of one `.runner`: each for one use, from the master key and the salt of secrets.json (HKDF-SHA256). */
export type StoreKeys = {
  readonly values: Buffer;
  readonly file: Buffer;
  readonly fingerprint: Buffer;
};

/** The folder of the user's settings of this product (XDG base directories). */
export function userConfigDir(environment: Readonly<Record<string, string | undefined>>): string {
  const base = environment['XDG_CONFIG_HOME'];
  const home = environment['HOME'];
  return join(
    base === undefined || base === '' ? join(home ?? homedir(), '.config') : base,
    'gatehouse',
  );
}

/**
 * Where the key of the local store comes from: RUNNER_SECRETS_KEY (64 hexadecimal digits, base64 of
 * 32 bytes, or any other text as a passphrase), else `runner.key` in the user's settings, made on first use.
 */
export class MasterKey {
  readonly source: KeySource;
  readonly #given: string | undefined;
  readonly #path: string;
  /** Stretching takes time and memory: it is done once for a salt, also when a file does not verify. */
  #stretched: { readonly salt: string; readonly key: Promise<Buffer> } | undefined;

  constructor(given: string | undefined, configDir: string) {
    this.#given = given === '' ? undefined : given;
    this.source = this.#given === undefined ? 'file' : 'environment';
    this.#path = join(configDir, 'runner.key');
  }

  /**
   * Keys for a store with this salt. `mayCreate`: whether a missing key file is made.
   * Errors: BACKEND_UNAVAILABLE when the key file is missing, readable by others, or no key.
   */
  async keysFor(salt: Buffer, mayCreate: boolean): Promise<StoreKeys> {
    const master = await this.#master(salt, mayCreate);
    const derive = (use: string): Buffer =>
      Buffer.from(
        hkdfSync('sha256', master, salt, `gatehouse runner secrets v1: ${use}`, KEY_BYTES),
      );
    return { values: derive('values'), file: derive('file'), fingerprint: derive('fingerprint') };
  }

  /** The key as text, for masks: what was given, else what stands in the key file. Errors: BACKEND_UNAVAILABLE. */
  async texts(): Promise<readonly string[]> {
    if (this.#given !== undefined) return [this.#given];
    const text = await readPrivateFile(this.#path, KEY_FILE);
    return text === undefined ? [] : [text.trim()];
  }

  async #master(salt: Buffer, mayCreate: boolean): Promise<Buffer> {
    if (this.#given === undefined) return await readOrMakeKeyFile(this.#path, mayCreate);
    const trimmed = this.#given.trim();
    if (HEX_KEY.test(trimmed)) return Buffer.from(trimmed, 'hex');
    if (BASE64_KEY.test(trimmed)) return Buffer.from(trimmed, 'base64');
    const saltText = salt.toString('base64');
    if (this.#stretched?.salt !== saltText) {
      this.#stretched = { salt: saltText, key: stretched(this.#given, salt) };
    }
    return await this.#stretched.key;
  }
}

export function newSalt(): Buffer {
  return randomBytes(SALT_BYTES);
}

/** The text of a file that must be this user's alone. Errors: BACKEND_UNAVAILABLE. Undefined when it is not there. */
export async function readPrivateFile(path: string, what: string): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await ifPresent(open(path, O_RDONLY | O_NOFOLLOW));
    if (handle === undefined) return undefined;
    const stat = await handle.stat();
    if (!stat.isFile() || stat.size > KEY_FILE_BYTES_MAX)
      throw unavailable(`${what} is no key file`);
    if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0) {
      throw unavailable(`${what} can be read by others; it should have mode 0600`);
    }
    return await handle.readFile('utf8');
  } catch (error) {
    if (error instanceof AppError) throw error;
    if (systemCode(error) === 'ELOOP') throw unavailable(`${what} is a symbolic link`, error);
    throw unavailable(`${what} cannot be read (${systemCode(error) ?? 'unknown'})`, error);
  } finally {
    await handle?.close();
  }
}

/**
 * Makes a private file (0600, folder 0700) unless there is one: of several processes one wins, and all
 * see whole content. Errors: BACKEND_UNAVAILABLE.
 */
export async function makePrivateFile(path: string, text: string, what: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(temporary, path);
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return;
    throw unavailable(`${what} cannot be made (${systemCode(error) ?? 'unknown'})`, error);
  } finally {
    await rm(temporary, { force: true });
  }
}

async function readOrMakeKeyFile(path: string, mayCreate: boolean): Promise<Buffer> {
  let text = await readPrivateFile(path, KEY_FILE);
  if (text === undefined && mayCreate) {
    await makePrivateFile(path, `${randomBytes(KEY_BYTES).toString('hex')}\n`, KEY_FILE);
    text = await readPrivateFile(path, KEY_FILE);
  }
  if (text === undefined) throw unavailable(`${KEY_FILE} is missing`);
  if (!HEX_KEY.test(text.trim())) throw unavailable(`${KEY_FILE} holds no key`);
  return Buffer.from(text.trim(), 'hex');
}

async function stretched(passphrase: string, salt: Buffer): Promise<Buffer> {
  return await new Promise((resolve, reject) => {
    scrypt(passphrase.normalize('NFKC'), salt, KEY_BYTES, SCRYPT, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}

function unavailable(text: string, cause?: unknown): AppError {
  return new AppError('BACKEND_UNAVAILABLE', text, { backend: 'local' }, cause);
}
