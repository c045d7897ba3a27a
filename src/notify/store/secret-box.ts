import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

const PREFIX = 'enc1';
const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const KEY_ID_LENGTH = 8;
const PURPOSE = 'gatehouse-notify signing secrets';

type Key = { readonly id: string; readonly bytes: Buffer };

/**
 * Keeps secrets from whoever reads the database: AES-256-GCM under a key derived from the settings, bound to `owner`, so that
 * one endpoint's cannot be put in another's place. The form is `enc1:<id of the key>:<base64 of iv, text and tag>`; the id is a
 * digest of the key. Without keys, secrets are kept as they are.
 */
export class SecretBox {
  readonly #keys: readonly Key[];

  /** The first of `keys` seals; each opens what it has sealed. */
  constructor(keys: readonly string[]) {
    this.#keys = keys.map((text) => {
      const bytes = Buffer.from(hkdfSync('sha256', text, '', PURPOSE, KEY_BYTES));
      const digest = createHash('sha256').update(bytes).digest('hex');
      return { id: digest.slice(0, KEY_ID_LENGTH), bytes };
    });
  }

  seal(secret: string, owner: string): string {
    const [key] = this.#keys;
    if (key === undefined || secret === '') return secret;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, key.bytes, iv).setAAD(Buffer.from(owner));
    const sealed = [iv, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()];
    return `${PREFIX}:${key.id}:${Buffer.concat(sealed).toString('base64')}`;
  }

  /** Undefined when none of the keys opens it. */
  open(stored: string, owner: string): string | undefined {
    const [prefix, id, text] = stored.split(':');
    // A plain one never has this form: it would be of a key that no one has.
    if (prefix !== PREFIX || text === undefined) return stored;
    const key = this.#keys.find((one) => one.id === id);
    const bytes = Buffer.from(text, 'base64');
    if (key === undefined || bytes.length < IV_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, key.bytes, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const opened = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString('utf8');
    } catch {
      // Not what was sealed, or not this endpoint's.
      return undefined;
    }
  }

  /** What the stored form of a secret that needs no sealing again begins with; undefined: nothing is sealed. */
  get newestPrefix(): string | undefined {
    const [key] = this.#keys;
    return key === undefined ? undefined : `${PREFIX}:${key.id}:`;
  }
}
