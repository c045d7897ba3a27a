import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../shared/app-error.ts';
import { DEVICE_TYPES, type DeviceType } from '../model/notification.ts';
import { type StreamGrant, TOKEN_SECONDS_MAX } from '../model/stream-order.ts';

/** [tenant, user, device type, expiry in ms, issue in ms, id]; releases before this one read and wrote the first four. */
type Payload = [string, string, DeviceType, number, number?, string?];

const VERSION = 'ns1';
const SIGNATURE_BYTES = 32;
/** Longer ones are refused before anything is computed. */
const TOKEN_LENGTH_MAX = 1_024;

/** Makes and checks stream tokens: `ns1.<payload>.<HMAC-SHA256>`, both parts base64url. */
export class StreamTokens {
  readonly #key: Buffer;

  /** Without a secret a random one is used: tokens end with the process. */
  constructor(secret: string | undefined) {
    this.#key = secret === undefined ? randomBytes(32) : Buffer.from(secret, 'utf8');
  }

  create(grant: StreamGrant): string {
    const { tenantId, userId, deviceType, expiresAtMs, issuedAtMs, tokenId } = grant;
    const payload: Payload = [tenantId, userId, deviceType, expiresAtMs, issuedAtMs, tokenId];
    const signed = `${VERSION}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
    return `${signed}.${this.#sign(signed).toString('base64url')}`;
  }

  /** Errors: STREAM_TOKEN_INVALID, with one text for all that can be wrong but expiry. */
  check(token: string, nowMs: number): StreamGrant {
    const parts = token.length > TOKEN_LENGTH_MAX ? [] : token.split('.');
    const [version, payload, signature] = parts;
    if (parts.length !== 3 || version !== VERSION) throw invalid();
    const given = Buffer.from(signature ?? '', 'base64url');
    const right = this.#sign(`${version}.${payload}`);
    if (given.length !== SIGNATURE_BYTES || !timingSafeEqual(given, right)) throw invalid();
    // It is ours: its shape is as `create` made it.
    const [tenantId, userId, deviceType, expiresAtMs, issuedAtMs, tokenId] = JSON.parse(
      Buffer.from(payload ?? '', 'base64url').toString('utf8'),
    ) as Payload;
    if (nowMs >= expiresAtMs) {
      throw new AppError('STREAM_TOKEN_INVALID', 'the stream token has expired');
    }
    return {
      tenantId,
      userId,
      deviceType: deviceTypeOf(deviceType),
      expiresAtMs,
      // It says nothing of that: it is as old as it may be, so that no revocation leaves it out.
      issuedAtMs: issuedAtMs ?? expiresAtMs - TOKEN_SECONDS_MAX * 1000,
      tokenId: tokenId ?? '',
    };
  }

  #sign(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}

/** The label of a device type as a caller states it. */
export function deviceTypeOf(text: string): DeviceType {
  return DEVICE_TYPES.find((known) => known === text) ?? 'other';
}

function invalid(): AppError {
  return new AppError('STREAM_TOKEN_INVALID', 'the stream token is missing or not valid');
}
