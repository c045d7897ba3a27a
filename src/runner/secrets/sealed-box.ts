import { secretbox, hsalsa } from '@noble/ciphers/salsa.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { blake2b } from '@noble/hashes/blake2.js';
import { AppError } from '../../shared/app-error.ts';

const KEY_BYTES = 32;
const NONCE_BYTES = 24;
/** `expand 32-byte k`, as little-endian words. */
const SIGMA = Uint32Array.of(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574);

/**
 * libsodium's crypto_box_seal, in which code hosts take secrets: whoever has the private key of
 * `publicKey` (base64 of 32 bytes) opens it, nobody can notify who sealed it. The result is base64 of the ephemeral
 * public key and the box; the nonce is BLAKE2b of both public keys.
 * Errors: BACKEND_UNAVAILABLE when the host's key is none.
 */
export function sealForHost(publicKey: string, value: string): string {
  const theirs = new Uint8Array(Buffer.from(publicKey, 'base64'));
  try {
    if (theirs.length !== KEY_BYTES) throw new TypeError('a public key has 32 bytes');
    const ours = x25519.keygen();
    const shared = x25519.getSharedSecret(ours.secretKey, theirs);
    const nonce = blake2b(Buffer.concat([ours.publicKey, theirs]), { dkLen: NONCE_BYTES });
    const box = secretbox(boxKey(shared), nonce).seal(new Uint8Array(Buffer.from(value)));
    return Buffer.concat([ours.publicKey, box]).toString('base64');
  } catch (error) {
    throw new AppError(
      'BACKEND_UNAVAILABLE',
      'the public key of the code host is none',
      { backend: 'host' },
      error,
    );
  }
}

/** crypto_box's key: HSalsa20 of the shared point and a zero nonce. Words are little-endian. */
function boxKey(shared: Uint8Array): Uint8Array {
  const out = new Uint32Array(KEY_BYTES / 4);
  hsalsa(SIGMA, wordsOf(shared), new Uint32Array(4), out);
  const bytes = Buffer.alloc(KEY_BYTES);
  out.forEach((word, index) => bytes.writeUInt32LE(word, index * 4));
  return new Uint8Array(bytes);
}

function wordsOf(bytes: Uint8Array): Uint32Array {
  const buffer = Buffer.from(bytes);
  return Uint32Array.from({ length: bytes.length / 4 }, (_, index) =>
    buffer.readUInt32LE(index * 4),
  );
}
