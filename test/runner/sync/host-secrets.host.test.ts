import { createPublicKey, diffieHellman, type KeyObject } from 'node:crypto';
import { secretbox, hsalsa } from '@noble/ciphers/salsa.js';
import { blake2b } from '@noble/hashes/blake2.js';
import { describe, expect, test } from 'vitest';
import { sealForHost } from '../../../src/runner/secrets/sealed-box.ts';
import { createFixture, type Fixture } from './fixture.ts';

/** Opens a sealed box with the host's private key, from libsodium's description of crypto_box_seal. */
function open(sealed: string, privateKey: KeyObject, publicKey: string): string {
  const bytes = Buffer.from(sealed, 'base64');
  const ephemeral = bytes.subarray(0, 32);
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: ephemeral.toString('base64url') },
    format: 'jwk',
  });
  const shared = diffieHellman({ privateKey, publicKey: key });
  const words = new Uint32Array(new Uint8Array(shared).buffer);
  const sigma = new Uint32Array(new Uint8Array(Buffer.from('expand 32-byte k')).buffer);
  const out = new Uint32Array(8);
  hsalsa(sigma, words, new Uint32Array(4), out);
  const nonce = blake2b(Buffer.concat([ephemeral, Buffer.from(publicKey, 'base64')]), {
    dkLen: 24,
  });
  const opened = secretbox(new Uint8Array(out.buffer), nonce).open(
    new Uint8Array(bytes.subarray(32)),
  );
  return Buffer.from(opened).toString('utf8');
}

async function put(
  fixture: Fixture,
  environment: string,
  name: string,
  value: string,
): Promise<string> {
  const { hostSecrets } = fixture.sync;
  const { keyId, key } = await hostSecrets.publicKey(environment);
  return await hostSecrets.putSecret(environment, name, {
    keyId,
    encryptedValue: sealForHost(key, value),
  });
}

describe('secrets of the code host', () => {
  test('arrive sealed, and the host can open them', async () => {
    const fixture = await createFixture();
    const { state, requests } = fixture.host;
    expect(await put(fixture, 'default', 'API_KEY', 'hush-hush')).toBe('created');
    expect(await put(fixture, 'default', 'API_KEY', 'hush-hush ü')).toBe('updated');
    const sealed = state.secrets.get('')?.get('API_KEY')?.sealed ?? '';
    expect(open(sealed, state.privateKey, state.publicKey)).toBe('hush-hush ü');
    expect(JSON.stringify(requests)).not.toContain('hush-hush');
  });

  test('of environments live apart; names are listed, values are not', async () => {
    const fixture = await createFixture();
    const { hostSecrets } = fixture.sync;
    fixture.host.state.secrets.set('on stage', new Map());
    await put(fixture, 'on stage', 'B', '1');
    for (let index = 0; index < 120; index++) await put(fixture, 'default', `A_${index}`, '1');
    expect((await hostSecrets.listSecrets('default')).length).toBe(120);
    expect(await hostSecrets.listSecrets('on stage')).toEqual([
      { name: 'B', updatedAt: expect.stringMatching(/^\d{4}-/) },
    ]);
    expect(await hostSecrets.listSecrets('nowhere')).toEqual([]);
    expect(await hostSecrets.removeSecret('on stage', 'B')).toBe(true);
    expect(await hostSecrets.removeSecret('on stage', 'B')).toBe(false);
    for (const environment of ['nowhere', '..', '.']) {
      await expect(put(fixture, environment, 'B', '1')).rejects.toMatchObject({
        reason: 'BACKEND_UNAVAILABLE',
      });
    }
    await expect(hostSecrets.removeSecret('default', '../../x')).rejects.toMatchObject({
      reason: 'INVALID_NAME',
    });
  });

  test('need a repository and a token', async () => {
    const { sync, host } = await createFixture({ config: {} });
    expect(sync.hostSecrets.problem()).toContain('no repository');
    await expect(sync.hostSecrets.publicKey('default')).rejects.toMatchObject({
      reason: 'REMOTE_MISSING',
    });
    await sync.putConfig({ host: { owner: host.owner, repo: host.repo } });
    expect(sync.hostSecrets.problem()).toBeUndefined();
    const poor = await createFixture({ settings: { hostToken: '' } });
    expect(poor.sync.hostSecrets.problem()).toContain('token');
    expect(host.requests).toEqual([]);
  });
});
