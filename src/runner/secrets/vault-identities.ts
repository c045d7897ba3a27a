import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { makePrivateFile, readPrivateFile } from './key-source.ts';
import type { WrappedKey } from './sops-document.ts';

const DATA_KEY_BYTES = 32;
/** Most projects have no vault, and it takes its time to load. */
const age = () => import('age-encryption');
const IDENTITY = /^AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]+$/i;

export type VaultIdentityOptions = {
  /** Of this product, in the user's settings; `vault-identity.txt` in it is made when a vault is and there is no other identity. */
  readonly configDir: string;
  /** SOPS_AGE_KEY, SOPS_AGE_KEY_FILE, SOPS_AGE_RECIPIENTS, XDG_CONFIG_HOME and HOME count, as for sops. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `age1…`, for a vault that is made here; default SOPS_AGE_RECIPIENTS, else the own identities. */
  readonly recipients?: readonly string[] | undefined;
};

/** The age keys of this user: who can open a vault and for whom one is made. Read at each use, so that a key can be added. */
export class VaultIdentities {
  readonly #options: VaultIdentityOptions;
  readonly #ownPath: string;

  constructor(options: VaultIdentityOptions) {
    this.#options = options;
    this.#ownPath = join(options.configDir, 'vault-identity.txt');
  }

  /**
   * The data key of a file. Errors: TypeError when no identity opens it (or there is none),
   * BACKEND_UNAVAILABLE for an identity file that cannot be read.
   */
  async unwrap(wrapped: readonly WrappedKey[]): Promise<Buffer> {
    if (wrapped.length === 0) throw new TypeError('it is encrypted for no age recipient');
    const identities = await this.#identities();
    if (identities.length === 0) {
      throw new TypeError('there is no age identity (SOPS_AGE_KEY_FILE or SOPS_AGE_KEY)');
    }
    for (const { enc } of wrapped) {
      const key = await opened(enc, identities);
      if (key?.length === DATA_KEY_BYTES) return key;
    }
    throw new TypeError('none of the age identities is one of its recipients');
  }

  /** The data key wrapped for each recipient of a new vault; makes an identity when there is neither. Errors: BACKEND_UNAVAILABLE. */
  async wrap(dataKey: Buffer): Promise<readonly WrappedKey[]> {
    const { armor, Encrypter } = await age();
    const wrapped: WrappedKey[] = [];
    for (const recipient of await this.#recipients()) {
      try {
        const encrypter = new Encrypter();
        encrypter.addRecipient(recipient);
        const file = await encrypter.encrypt(new Uint8Array(dataKey));
        wrapped.push({ recipient, enc: armor.encode(file) });
      } catch (error) {
        throw unavailable(`the age recipient ${recipient.slice(0, 80)} is none`, error);
      }
    }
    return wrapped;
  }

  /** The identities themselves, for masks. Errors: BACKEND_UNAVAILABLE. */
  texts(): Promise<readonly string[]> {
    return this.#identities();
  }

  async #recipients(): Promise<readonly string[]> {
    const { recipients, environment } = this.#options;
    const named = recipients ?? environment['SOPS_AGE_RECIPIENTS']?.split(',') ?? [];
    const given = named.map((recipient) => recipient.trim()).filter((text) => text !== '');
    if (given.length > 0) return [...new Set(given)];
    let identities = await this.#identities();
    if (identities.length === 0) {
      await this.#makeOwn();
      identities = await this.#identities();
    }
    const { identityToRecipient } = await age();
    return await Promise.all(identities.map((identity) => identityToRecipient(identity)));
  }

  /** In the form of age-keygen, so that `sops` and `age -i` take the file. */
  async #makeOwn(): Promise<void> {
    const { generateIdentity, identityToRecipient } = await age();
    const identity = await generateIdentity();
    const recipient = await identityToRecipient(identity);
    await makePrivateFile(
      this.#ownPath,
      `# public key: ${recipient}\n${identity}\n`,
      'the age identity vault-identity.txt',
    );
  }

  async #identities(): Promise<readonly string[]> {
    const { environment } = this.#options;
    const texts = [
      await readPrivateFile(this.#ownPath, 'the age identity vault-identity.txt'),
      environment['SOPS_AGE_KEY']?.replaceAll(/[\s,]+/g, '\n'),
      await this.#keyFile(),
      await readIfPresent(sopsKeysPath(environment)),
    ];
    const lines = texts.flatMap((text) => (text ?? '').split('\n').map((line) => line.trim()));
    return [...new Set(lines.filter((line) => IDENTITY.test(line)))];
  }

  async #keyFile(): Promise<string | undefined> {
    const path = this.#options.environment['SOPS_AGE_KEY_FILE'];
    if (path === undefined || path === '') return undefined;
    try {
      return await readFile(path, 'utf8');
    } catch (error) {
      throw unavailable('the file of SOPS_AGE_KEY_FILE cannot be read', error);
    }
  }
}

/** sops's own default, Go's os.UserConfigDir. */
function sopsKeysPath(environment: Readonly<Record<string, string | undefined>>): string {
  const home = environment['HOME'] ?? homedir();
  const xdg = environment['XDG_CONFIG_HOME'];
  const fallback = process.platform === 'darwin' ? 'Library/Application Support' : '.config';
  const base = xdg === undefined || xdg === '' ? join(home, fallback) : xdg;
  return join(base, 'sops', 'age', 'keys.txt');
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    // Absent or not for us: another identity may do.
    return undefined;
  }
}

async function opened(enc: string, identities: readonly string[]): Promise<Buffer | undefined> {
  const { armor, Decrypter } = await age();
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  try {
    return Buffer.from(await decrypter.decrypt(armor.decode(enc)));
  } catch {
    // Not for these identities; the next stanza may be.
    return undefined;
  }
}

function unavailable(text: string, cause?: unknown): AppError {
  return new AppError('BACKEND_UNAVAILABLE', text, { backend: 'vault' }, cause);
}
