import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { AppError } from '../../shared/app-error.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * AES-256-GCM (NIST SP 800-38D) with a random nonce; `context` is authenticated and not stored.
 * The result is base64 of nonce, ciphertext and tag. A key takes at most 2^32 values.
 */
export function sealValue(key: Buffer, context: string, value: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, body, cipher.getAuthTag()]).toString('base64');
}

/** Errors: BACKEND_UNAVAILABLE when key, context or a single bit of `sealed` is another. */
export function openValue(key: Buffer, context: string, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64');
  try {
    if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64') !== sealed) {
      throw new TypeError('not base64 of a sealed value');
    }
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const body = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
  } catch (error) {
    throw new AppError(
      'BACKEND_UNAVAILABLE',
      'a value cannot be decrypted: it was changed, or the key is another',
      { backend: 'local' },
      error,
    );
  }
}
